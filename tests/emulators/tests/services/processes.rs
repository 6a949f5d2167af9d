//! Emulators are there when they are said to be, and leave nothing behind.
#![expect(clippy::unwrap_used, reason = "tests")]

use emulators::Emulator;
use std::net::{Ipv4Addr, TcpStream};

fn answers(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[tokio::test]
async fn a_dropped_emulator_is_gone_and_a_resumed_one_keeps_its_data() {
    let mut redis = Emulator::redis().await.unwrap();
    let port = redis.port();
    assert!(answers(port));
    for _ in 0..2 {
        redis.stop();
        assert!(!answers(port));
    }
    redis.resume().await.unwrap();
    assert!(answers(port) && redis.port() == port);
    drop(redis);
    assert!(!answers(port));
}

#[tokio::test]
async fn the_shapes_of_other_services_are_served() {
    let moto = Emulator::moto().await.unwrap();
    assert!(answers(moto.port()));
    assert!(moto.log().contains("Running on"), "{}", moto.log());
}
