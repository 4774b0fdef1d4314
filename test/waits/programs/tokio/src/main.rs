//! Tasks on two worker threads that sleep and talk over a socket, and threads that block: on a mutex that
//! another holds, on a channel, in sleep.

use std::sync::{mpsc, Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const PAUSE: Duration = Duration::from_millis(8);

async fn serve(listener: TcpListener) {
    while let Ok((mut client, _)) = listener.accept().await {
        tokio::spawn(async move {
            let mut byte = [0; 1];
            while client.read_exact(&mut byte).await.is_ok() {
                if client.write_all(&byte).await.is_err() {
                    break;
                }
            }
        });
    }
}

async fn ask(address: std::net::SocketAddr, end: Instant) -> u64 {
    let mut server = TcpStream::connect(address).await.unwrap();
    let mut asked = 0;
    while Instant::now() < end {
        let mut byte = [7; 1];
        server.write_all(&byte).await.unwrap();
        server.read_exact(&mut byte).await.unwrap();
        tokio::time::sleep(PAUSE).await;
        asked += 1;
    }
    asked
}

fn hold(lock: &Mutex<u64>, end: Instant) {
    while Instant::now() < end {
        *lock.lock().unwrap() += 1;
        let mut held = lock.lock().unwrap();
        thread::sleep(Duration::from_millis(40));
        *held += 1;
        drop(held);
        thread::sleep(Duration::from_millis(10));
    }
}

fn named(name: &str, work: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    thread::Builder::new().name(name.into()).spawn(work).unwrap()
}

fn main() {
    let seconds = std::env::args().nth(1).map_or(5, |text| text.parse().unwrap());
    let end = Instant::now() + Duration::from_secs(seconds);
    let lock = Arc::new(Mutex::new(0));
    let (sender, receiver) = mpsc::channel::<u64>();
    let mut threads = vec![named("receives", move || while receiver.recv().is_ok() {})];
    for name in ["holds", "waits"] {
        let lock = Arc::clone(&lock);
        threads.push(named(name, move || hold(&lock, end)));
    }
    threads.push(named("sends", move || {
        while Instant::now() < end {
            sender.send(1).unwrap();
            thread::sleep(Duration::from_millis(25));
        }
    }));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let asked = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(listener));
        let tasks: Vec<_> = (0..4).map(|_| tokio::spawn(ask(address, end))).collect();
        let blocking = tokio::task::spawn_blocking(move || {
            while Instant::now() < end {
                thread::sleep(Duration::from_millis(70));
            }
        });
        let mut asked = 0;
        for task in tasks {
            asked += task.await.unwrap();
        }
        blocking.await.unwrap();
        asked
    });
    drop(runtime);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    println!("{asked}");
}
