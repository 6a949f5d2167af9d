//! The commands that a Redis got.

use std::{collections::BTreeMap, io};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
};

/// How often each command was run by the Redis on this port of 127.0.0.1 since it was started: `publish`, `subscribe`, ….
pub async fn commands(port: u16) -> io::Result<BTreeMap<String, usize>> {
    let mut stream = ask(port, "INFO commandstats").await?;
    // A text with its length before it: `$123\r\n…`.
    let mut length = String::new();
    stream.read_line(&mut length).await?;
    let length = length.trim().trim_start_matches('$').parse().map_err(io::Error::other)?;
    let mut text = vec![0; length];
    stream.read_exact(&mut text).await?;
    Ok(parse(&String::from_utf8_lossy(&text)))
}

/// How many connections listen to a channel of the Redis on this port of 127.0.0.1.
pub async fn listeners(port: u16, channel: &str) -> io::Result<usize> {
    let mut stream = ask(port, &format!("PUBSUB NUMSUB {channel}")).await?;
    // The channel and its number: `*2`, the length of the name, the name, `:1`.
    let mut line = String::new();
    for _ in 0..4 {
        line.clear();
        stream.read_line(&mut line).await?;
    }
    line.trim().trim_start_matches(':').parse().map_err(io::Error::other)
}

async fn ask(port: u16, command: &str) -> io::Result<BufReader<TcpStream>> {
    let mut stream = BufReader::new(TcpStream::connect(("127.0.0.1", port)).await?);
    stream.write_all(format!("{command}\r\n").as_bytes()).await?;
    Ok(stream)
}

fn parse(text: &str) -> BTreeMap<String, usize> {
    let count = |line: &str| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        Some((name.to_owned(), rest.split(',').next()?.parse().ok()?))
    };
    text.lines().filter_map(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_counted_by_name() {
        let text = "# Commandstats\r\ncmdstat_publish:calls=12,usec=7,usec_per_call=0.58\r\ncmdstat_client|setname:calls=2,usec=1\r\n";
        let counts = parse(text);
        assert_eq!((counts["publish"], counts["client|setname"]), (12, 2));
    }
}
