//! A TCP server on several threads of tokio: to each line "N" it answers "N TOTAL", TOTAL being the sum of that connection's
//! numbers, some of them after a timer or on a thread for what blocks. "quit" ends it. `tokio_server PORT`

use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

static ANSWERED: AtomicU32 = AtomicU32::new(0);

type Fallible = Result<(), Box<dyn Error + Send + Sync>>;

#[tokio::main(flavor = "multi_thread", worker_threads = 3)]
async fn main() -> Fallible {
    let port = std::env::args().nth(1).ok_or("usage: tokio_server PORT")?;
    let listener = TcpListener::bind(("127.0.0.1", port.parse()?)).await?;
    let quit = Arc::new(Notify::new());
    let accepting = tokio::spawn(accept(listener, quit.clone()));
    quit.notified().await;
    accepting.abort();
    println!("answered {} lines", ANSWERED.load(SeqCst));
    Ok(())
}

async fn accept(listener: TcpListener, quit: Arc<Notify>) -> Fallible {
    loop {
        let (peer, _) = listener.accept().await?;
        let quit = quit.clone();
        tokio::spawn(async move {
            if let Err(error) = serve(peer, quit).await {
                eprintln!("{error}");
                std::process::exit(2);
            }
        });
    }
}

async fn serve(peer: TcpStream, quit: Arc<Notify>) -> Fallible {
    peer.set_nodelay(true)?;
    let (reader, mut writer) = peer.into_split();
    let mut lines = BufReader::new(reader).lines();
    let mut total = 0u64;
    while let Some(line) = lines.next_line().await? {
        if line == "quit" {
            quit.notify_one();
            return Ok(());
        }
        let number: u64 = line.parse()?;
        total += number;
        if number % 50 == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let text = match number % 100 {
            1 => tokio::task::spawn_blocking(move || format!("{number} {total}\n")).await?,
            _ => format!("{number} {total}\n"),
        };
        ANSWERED.fetch_add(1, SeqCst);
        writer.write_all(text.as_bytes()).await?;
    }
    Ok(())
}
