use std::collections::HashMap;
use std::io::Read;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

fn main() {
    let sums = Arc::new(Mutex::new(HashMap::new()));
    let threads: Vec<_> = (0..4u64)
        .map(|t| {
            let sums = Arc::clone(&sums);
            thread::spawn(move || {
                let mut strings = Vec::new();
                for i in 0..200_000u64 {
                    strings.push((i * t).to_string());
                }
                sums.lock().unwrap().insert(t, strings.concat().len());
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let mut text = String::new();
    if let Ok(mut gate) = std::fs::File::open("gate") {
        gate.read_to_string(&mut text).unwrap();
    }
    let mut sums: Vec<_> = sums.lock().unwrap().iter().map(|(k, v)| (*k, *v)).collect();
    sums.sort();
    println!("{:?}", sums);
    println!("{:?}", Command::new("sh").args(["-c", "exit 3"]).status());
    println!("{}", std::panic::catch_unwind(|| panic!("caught")).is_err());
    std::process::exit(5);
}
