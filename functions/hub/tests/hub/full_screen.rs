//! Chats on the full screen as a person meets them: `buildscale` alone, on a terminal, with keys.

use crate::{
    support::{PATIENCE, Result, start},
    terminal::Screen,
};
use rustix::{
    process::{Pid, Signal, kill_process},
    termios::{LocalModes, tcgetattr},
};
use tokio::io::AsyncReadExt;

/// The script of the model.
const SCRIPT: &str = r#"
rules:
- when: {user: '^say'}
  steps:
  - {calls: [{tool: exec, args: {command: echo said one}}]}
  - {when: {success: true}, text: 'It said {{result}}', else: {text: 'Refused: {{result}}'}}
- when: {user: '^ask'}
  steps:
  - calls:
    - tool: ask_user
      args: {questions: [{name: colour, question: 'Which colour?', schema: {type: string}, buttons: [green, blue]}]}
  - {text: 'Painted {{result}}'}
- when: {user: '^write'}
  steps:
  - {calls: [{tool: write, args: {path: /projects/note.md, content: one}}]}
  - {text: 'Written.'}
- when: {user: '^count'}
  steps: [{text: 'one two three four five six seven eight nine ten', chunks: 40, delay_ms: 1000}]
- when: {user: '.'}
  steps: [{text: 'Hello from **the other** chat.'}]
"#;

const DOWN: &str = "\x1b[B";
const ESC: &str = "\x1b";
const CTRL_C: &str = "\x03";
const CTRL_N: &str = "\x0e";
const CTRL_S: &str = "\x13";
const CTRL_X: &str = "\x18";
const LEFT: &str = "\x1b[?1049l";

/// The cells of a terminal: as much of one as the program uses.
struct Grid {
    cells: Vec<Vec<char>>,
    at: (usize, usize),
    /// The bytes that are no whole sequence yet.
    rest: String,
    /// All that came.
    all: String,
}

impl Grid {
    fn new() -> Self {
        Self { cells: vec![vec![' '; 100]; 24], at: (0, 0), rest: String::new(), all: String::new() }
    }

    fn feed(&mut self, text: &str) {
        self.all.push_str(text);
        self.rest.push_str(text);
        while let Some(c) = self.rest.chars().next() {
            if c != '\x1b' {
                self.put(c);
                self.rest.drain(..c.len_utf8());
                continue;
            }
            let Some(end) = self.rest.get(2..).and_then(|rest| rest.find(|c: char| c.is_ascii_alphabetic())) else {
                return;
            };
            let sequence: String = self.rest.drain(..end + 3).collect();
            self.obey(&sequence);
        }
    }

    fn put(&mut self, c: char) {
        let (line, column) = self.at;
        match c {
            '\r' => self.at.1 = 0,
            '\n' => self.at.0 += 1,
            c => {
                if let Some(cell) = self.cells.get_mut(line).and_then(|line| line.get_mut(column)) {
                    *cell = c;
                }
                self.at.1 += 1;
            }
        }
    }

    fn obey(&mut self, sequence: &str) {
        let numbers = sequence.trim_start_matches("\x1b[").trim_end_matches(|c: char| c.is_ascii_alphabetic());
        match sequence.chars().last() {
            Some('H') => {
                let mut numbers = numbers.split(';').map(|number| number.parse().unwrap_or(1_usize) - 1);
                self.at = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
            }
            Some('J') => self.cells = Self::new().cells,
            _ => {}
        }
    }

    fn text(&self) -> String {
        self.cells.iter().map(|line| line.iter().collect::<String>().trim_end().to_owned() + "\n").collect()
    }
}

/// Waits until the screen fits.
async fn until(screen: &mut Screen, grid: &mut Grid, what: &str, fits: impl Fn(&str) -> bool) -> Result {
    let looking = async {
        while !fits(&grid.text()) {
            let mut bytes = [0; 4096];
            match screen.pty.read(&mut bytes).await {
                Ok(0) | Err(_) => return false,
                Ok(read) => grid.feed(&String::from_utf8_lossy(bytes.get(..read).unwrap_or_default())),
            }
        }
        true
    };
    let looked = tokio::time::timeout(PATIENCE, looking).await;
    match looked {
        Ok(true) => Ok(()),
        _ => Err(format!("{what:?} is not shown; there is:\n{}", grid.text()).into()),
    }
}

async fn shows(screen: &mut Screen, grid: &mut Grid, words: &str) -> Result {
    until(screen, grid, words, |text| text.contains(words)).await
}

/// Waits until the program has ended; gives its exit code and all that it wrote.
async fn ended(mut screen: Screen, mut grid: Grid) -> Result<(Option<i32>, String)> {
    let mut rest = Vec::new();
    // A terminal reports the end of its other side as an error.
    let _ = tokio::time::timeout(PATIENCE, screen.pty.read_to_end(&mut rest)).await?;
    grid.feed(&String::from_utf8_lossy(&rest));
    let code = tokio::time::timeout(PATIENCE, screen.child.wait()).await??.code();
    Ok((code, grid.all))
}

#[tokio::test]
async fn chats_are_led_on_the_full_screen() -> Result {
    let data = tempfile::tempdir()?;
    let script = data.path().join("screen.yaml");
    std::fs::write(&script, SCRIPT)?;
    let hub = start(data.path(), &[("BUILDSCALE__AI__SCRIPT", &script.display().to_string())]).await?;
    let client = hub.client();
    let place = client.place().await?;
    let workspace = place.rsplit('/').next().ok_or("no workspace")?;
    let state = data.path().join("state");
    let (mut screen, mut grid) = (Screen::start(&client, &state, &["--workspace", workspace])?, Grid::new());
    let grid = &mut grid;
    shows(&mut screen, grid, "Type a task and press Enter.").await?;
    assert!(!tcgetattr(&screen.pty)?.local_modes.contains(LocalModes::ECHO));

    // A permission is denied with a reason: words go to where they are wanted.
    screen.keys("say it\r").await?;
    shows(&mut screen, grid, "May exec run?").await?;
    shows(&mut screen, grid, "Always here: commands that begin with `echo said`").await?;
    screen.keys("it is late\r").await?;
    shows(&mut screen, grid, "a person declined: it is late").await?;
    shows(&mut screen, grid, "Refused:").await?;
    shows(&mut screen, grid, "ready").await?;
    // A question is answered by its second button.
    screen.keys("ask me\r").await?;
    shows(&mut screen, grid, "Which colour?").await?;
    shows(&mut screen, grid, "1. green").await?;
    screen.keys(&format!("{DOWN}\r")).await?;
    until(&mut screen, grid, "Painted blue", |text| text.contains("Painted") && text.contains("blue")).await?;
    shows(&mut screen, grid, "ready").await?;
    // The changes of a turn in files are seen, taken back and restored.
    let file = format!("{place}/files/by-path?path=/projects/note.md");
    screen.keys("write it\r").await?;
    shows(&mut screen, grid, "Written.").await?;
    shows(&mut screen, grid, "ready").await?;
    screen.keys("/diff\r").await?;
    shows(&mut screen, grid, "/projects/note.md  new, v1").await?;
    screen.keys("/undo\r").await?;
    shows(&mut screen, grid, "the agent is not told; /redo restores it").await?;
    client.look(&file).await?.refuses(404, "NOT_FOUND")?;
    screen.keys("/redo\r").await?;
    shows(&mut screen, grid, "1 brought back").await?;
    client.look(&file).await?.is(200)?;
    screen.keys("/cost\r").await?;
    shows(&mut screen, grid, "3 turns, ").await?;
    // By itself the turn would take most of a minute.
    screen.keys("count\r").await?;
    shows(&mut screen, grid, "streaming").await?;
    screen.keys(ESC).await?;
    shows(&mut screen, grid, "stopped (user_cancelled)").await?;
    shows(&mut screen, grid, "ready").await?;

    // Another chat, and back by the list: the draft is still there.
    screen.keys("half a draft").await?;
    shows(&mut screen, grid, "half a draft").await?;
    screen.keys(CTRL_N).await?;
    shows(&mut screen, grid, "What shall the agent do?").await?;
    screen.keys("hello\r").await?;
    shows(&mut screen, grid, "Hello from the other chat.").await?;
    shows(&mut screen, grid, "ready").await?;
    screen.keys(CTRL_S).await?;
    shows(&mut screen, grid, "Enter open").await?;
    screen.keys("say\r").await?;
    shows(&mut screen, grid, "half a draft").await?;
    shows(&mut screen, grid, "stopped (user_cancelled)").await?;
    screen.keys(CTRL_X).await?;
    shows(&mut screen, grid, "Hello from the other chat.").await?;

    screen.keys(CTRL_C).await?;
    shows(&mut screen, grid, "Ctrl-C again leaves").await?;
    screen.keys(CTRL_C).await?;
    shows(&mut screen, grid, "go on with: buildscale").await?;
    let modes = tcgetattr(&screen.pty)?.local_modes;
    assert!(modes.contains(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG));
    let (code, all) = ended(screen, std::mem::replace(grid, Grid::new())).await?;
    assert_eq!(code, Some(0));
    assert!(all.contains(LEFT));
    // The chats are those of the hub.
    let chats = client.get(&format!("{place}/chats")).await?;
    assert_eq!(chats["chats"].as_array().map(Vec::len), Some(2));
    Ok(())
}

#[tokio::test]
async fn a_terminal_is_restored_when_the_screen_is_ended_from_outside() -> Result {
    let data = tempfile::tempdir()?;
    let hub = start(data.path(), &[]).await?;
    let client = hub.client();
    client.place().await?;
    let (mut screen, mut grid) = (Screen::start(&client, &data.path().join("state"), &[])?, Grid::new());
    shows(&mut screen, &mut grid, "Type a task and press Enter.").await?;
    screen.pty.resize(pty_process::Size::new(12, 40))?;
    until(&mut screen, &mut grid, "keys in the last line", |text| {
        text.lines().nth(11).is_some_and(|line| line.contains("Enter send"))
    })
    .await?;
    let process = screen.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)).ok_or("it has ended")?;
    kill_process(process, Signal::TERM)?;
    let (code, all) = ended(screen, grid).await?;
    assert_eq!(code, Some(130));
    assert!(all.contains(LEFT));
    Ok(())
}
