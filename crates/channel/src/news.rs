//! What has happened elsewhere, on its way to the microkernel that wants to know. Events that nobody takes are counted and dropped; what
//! becomes of nodes never is.

use crate::calling::News;
use std::collections::BTreeMap;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// As many events of one node may wait, and as long ones, so that none has room of another's.
const MOST: usize = 256;
const MOST_BYTES: usize = 4 << 20;

/// How many of each node wait, and how long they are.
#[derive(Clone, Default)]
struct Waiting(Arc<Mutex<BTreeMap<usize, (usize, usize)>>>);

impl Waiting {
    fn all(&self) -> MutexGuard<'_, BTreeMap<usize, (usize, usize)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False: there is no room for another one.
    fn add(&self, node: usize, length: usize) -> bool {
        let mut all = self.all();
        let (count, bytes) = all.entry(node).or_default();
        let has_room = *count < MOST && *bytes + length <= MOST_BYTES;
        if has_room {
            (*count, *bytes) = (*count + 1, *bytes + length);
        }
        has_room
    }

    fn remove(&self, node: usize, length: usize) {
        if let Some((count, bytes)) = self.all().get_mut(&node) {
            (*count, *bytes) = (*count - 1, *bytes - length);
        }
    }
}

/// Where they go in.
pub struct In {
    sender: Sender<News>,
    waiting: Waiting,
    lost: BTreeMap<usize, u64>,
}

/// Where they come out.
pub struct Out {
    receiver: Receiver<News>,
    waiting: Waiting,
}

pub fn queue() -> (In, Out) {
    let (sender, receiver) = channel();
    let waiting = Waiting::default();
    (In { sender, waiting: waiting.clone(), lost: BTreeMap::new() }, Out { receiver, waiting })
}

impl In {
    pub(crate) fn push(&mut self, news: News) {
        if let News::Told { node, told } = &news {
            if !self.waiting.add(*node, told.payload.len()) {
                *self.lost.entry(*node).or_default() += 1;
                return;
            }
            if let Some(count) = self.lost.remove(node) {
                self.send(News::Lost { node: *node, count });
            }
        }
        self.send(news);
    }

    fn send(&self, news: News) {
        // Where nobody wants to know any more.
        let _ = self.sender.send(news);
    }
}

impl Out {
    /// Waits for the next; none: there will be no more.
    pub fn next(&self) -> Option<News> {
        self.receiver.recv().ok().map(|news| self.taken(news))
    }

    /// The next within this time.
    pub fn within(&self, time: std::time::Duration) -> Option<News> {
        self.receiver.recv_timeout(time).ok().map(|news| self.taken(news))
    }

    fn taken(&self, news: News) -> News {
        if let News::Told { node, told } = &news {
            self.waiting.remove(*node, told.payload.len());
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Told;
    use outlast_core::Payload;

    fn told(node: usize, length: usize) -> News {
        let payload = Payload::of(&vec![0u8; length]).unwrap();
        News::Told { node, told: Told { pin: "schl".into(), name: "switched".into(), program: None, payload } }
    }

    #[test]
    fn too_many_events_are_counted_and_what_becomes_of_nodes_is_not_lost() {
        let (mut to, from) = queue();
        (0..MOST + 7).for_each(|_| to.push(told(1, 0)));
        to.push(News::Vanished { node: 1, why: String::new() });
        (0..MOST).for_each(|_| assert_eq!(from.next(), Some(told(1, 0))));
        assert!(matches!(from.next(), Some(News::Vanished { .. })));
        to.push(told(1, 0));
        drop(to);
        assert_eq!(from.next(), Some(News::Lost { node: 1, count: 7 }));
        assert_eq!((from.next(), from.next()), (Some(told(1, 0)), None));
    }

    #[test]
    fn a_node_that_tells_without_end_takes_no_room_of_others_and_not_much() {
        let (mut to, from) = queue();
        // With its length each is a little longer than this.
        let long = 1 << 19;
        for _ in 0..MOST {
            to.push(told(1, long));
            to.push(told(2, 0));
        }
        drop(to);
        let all: Vec<News> = std::iter::from_fn(|| from.next()).collect();
        let of = |wanted: usize| {
            all.iter().filter(|news| matches!(news, News::Told { node, .. } if *node == wanted)).count()
        };
        assert_eq!((of(1), of(2)), (MOST_BYTES / long - 1, MOST));
    }
}
