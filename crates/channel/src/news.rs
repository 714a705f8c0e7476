//! What has happened elsewhere, on its way to the microkernel that wants to know. Events that nobody takes are counted and dropped; what
//! becomes of nodes never is.

use crate::calling::News;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;

/// As many events may wait.
const MOST: usize = 256;

/// Where they go in.
pub struct In {
    sender: Sender<News>,
    waiting: Arc<AtomicUsize>,
    lost: BTreeMap<usize, u64>,
}

/// Where they come out.
pub struct Out {
    receiver: Receiver<News>,
    waiting: Arc<AtomicUsize>,
}

pub fn queue() -> (In, Out) {
    let (sender, receiver) = channel();
    let waiting = Arc::new(AtomicUsize::new(0));
    (In { sender, waiting: Arc::clone(&waiting), lost: BTreeMap::new() }, Out { receiver, waiting })
}

impl In {
    pub(crate) fn push(&mut self, news: News) {
        if let News::Told { node, .. } = &news {
            if self.waiting.load(Relaxed) >= MOST {
                *self.lost.entry(*node).or_default() += 1;
                return;
            }
            let lost = self.lost.remove(node).map(|count| News::Lost { node: *node, count });
            lost.into_iter().for_each(|lost| self.send(lost));
        }
        self.send(news);
    }

    fn send(&self, news: News) {
        self.waiting.fetch_add(1, Relaxed);
        // Where nobody wants to know any more.
        let _ = self.sender.send(news);
    }
}

impl Out {
    /// Waits for the next; none: there will be no more.
    pub fn next(&self) -> Option<News> {
        let news = self.receiver.recv().ok()?;
        self.waiting.fetch_sub(1, Relaxed);
        Some(news)
    }

    /// The next within this time.
    pub fn within(&self, time: std::time::Duration) -> Option<News> {
        let news = self.receiver.recv_timeout(time).ok()?;
        self.waiting.fetch_sub(1, Relaxed);
        Some(news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Told;
    use outlast_core::Payload;

    #[test]
    fn too_many_events_are_counted_and_what_becomes_of_nodes_is_not_lost() {
        let (mut to, from) = queue();
        let told = |node| News::Told {
            node,
            told: Told { pin: "schl".into(), name: "switched".into(), program: None, payload: Payload::NONE },
        };
        (0..MOST + 7).for_each(|_| to.push(told(1)));
        to.push(News::Vanished { node: 1, why: String::new() });
        (0..MOST).for_each(|_| assert_eq!(from.next(), Some(told(1))));
        assert!(matches!(from.next(), Some(News::Vanished { .. })));
        to.push(told(1));
        drop(to);
        assert_eq!(from.next(), Some(News::Lost { node: 1, count: 7 }));
        assert_eq!((from.next(), from.next()), (Some(told(1)), None));
    }
}
