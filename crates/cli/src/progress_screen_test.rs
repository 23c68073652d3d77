//! A test of what a terminal shows of the live block and of the lines that are beside it.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard},
};

use indicatif::TermLike;

use super::*;

/// Columns of the terminal.
const WIDTH: u16 = 80;

/// A terminal in memory: its lines, and where the cursor is.
#[derive(Clone, Debug, Default)]
struct Screen(Arc<Mutex<Content>>);

#[derive(Debug, Default)]
struct Content {
    lines: Vec<Vec<char>>,
    row: usize,
    column: usize,
}

impl Screen {
    fn content(&self) -> MutexGuard<'_, Content> {
        self.0.lock().expect("no thread panics while it draws")
    }

    fn write(&self, text: &str) {
        self.content().write(text);
    }

    /// Returns the lines down to the last that shows anything.
    fn shown(&self) -> Vec<String> {
        let text = |line: &Vec<char>| line.iter().collect::<String>().trim_end().to_owned();
        let mut lines: Vec<String> = self.content().lines.iter().map(text).collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines
    }
}

impl Content {
    fn line(&mut self) -> &mut Vec<char> {
        let line_count = self.lines.len().max(self.row + 1);
        self.lines.resize(line_count, Vec::new());
        &mut self.lines[self.row]
    }

    fn write(&mut self, text: &str) {
        for char in text.chars() {
            match char {
                '\n' => (self.row, self.column) = (self.row + 1, 0),
                '\r' => self.column = 0,
                char => {
                    // As terminals do, at the first character that has no place and not before.
                    if self.column == usize::from(WIDTH) {
                        (self.row, self.column) = (self.row + 1, 0);
                    }
                    let column = self.column;
                    let line = self.line();
                    line.resize(line.len().max(column + 1), ' ');
                    line[column] = char;
                    self.column += 1;
                }
            }
        }
    }
}

impl TermLike for Screen {
    fn width(&self) -> u16 {
        WIDTH
    }

    fn move_cursor_up(&self, count: usize) -> io::Result<()> {
        let mut content = self.content();
        content.row = content.row.saturating_sub(count);
        Ok(())
    }

    fn move_cursor_down(&self, count: usize) -> io::Result<()> {
        self.content().row += count;
        Ok(())
    }

    fn move_cursor_right(&self, count: usize) -> io::Result<()> {
        self.content().column += count;
        Ok(())
    }

    fn move_cursor_left(&self, count: usize) -> io::Result<()> {
        let mut content = self.content();
        content.column = content.column.saturating_sub(count);
        Ok(())
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write(text);
        self.write("\n");
        Ok(())
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.write(text);
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        let mut content = self.content();
        content.line().clear();
        content.column = 0;
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

/// console-rs/indicatif#360: lines and bar ran into each other.
#[test]
fn indicatif_360_lines_beside_the_live_block_stay_whole_and_so_does_the_block() {
    let screen = Screen::default();
    let target = ProgressDrawTarget::term_like(Box::new(screen.clone()));
    let mut display = Display {
        form: Form::live(target),
        slice_count: None,
        is_refusal_told: false,
    };
    let printer = Printer {
        verbosity: Verbosity::Normal,
    };
    let mut beside: Vec<String> = Vec::new();
    for pages in 1..=5 {
        let progress = Progress {
            pages,
            ..Progress::default()
        };
        display.update(&progress, &printer);
        for line in ["short".to_owned(), "wider than the block, ".repeat(3)] {
            display.beside(|| screen.write(&format!("{line}\n")));
            beside.push(line.trim_end().to_owned());
        }
        let block = live_block(&progress);
        let expected: Vec<String> = beside
            .iter()
            .map(String::as_str)
            .chain(block.lines())
            .map(str::to_owned)
            .collect();
        assert_eq!(screen.shown(), expected);
    }
    display.finish();
    assert_eq!(screen.shown(), beside);
}
