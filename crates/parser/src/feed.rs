//! Feeds a page to the tokenizer piece by piece, so that its cost can be looked at on the way.

use html5ever::{
    TokenizerResult,
    buffer_queue::BufferQueue,
    tendril::StrTendril,
    tokenizer::{TokenSink, Tokenizer},
};

use crate::{flood::FloodGuard, gate::Gate, source::OverBounds};

/// Bytes fed at a time. What an engine may have grown by within one piece is bounded by it.
const PIECE_BYTES: usize = 4_096;

/// Feeds the whole text and ends the tokenizer, unless the engine is found out of its bounds after a piece.
pub(crate) fn feed<S: TokenSink>(
    tokenizer: &Tokenizer<Gate<S>>,
    text: &str,
    is_within_bounds: impl Fn(&S) -> bool,
) -> Result<(), OverBounds> {
    let mut flood = FloodGuard::new(text);
    let mut at = 0;
    while at < text.len() {
        let end = piece_end(text, at);
        push(tokenizer, &text[at..end]);
        let has_progressed = tokenizer.sink.take_progress();
        at = end;
        if let Some(cut) = flood.check(end, has_progressed) {
            push(tokenizer, &text[end..cut.from]);
            at = cut.to;
        }
        if !is_within_bounds(tokenizer.sink.engine()) {
            return Err(OverBounds);
        }
    }
    tokenizer.end();
    Ok(())
}

fn push<S: TokenSink>(tokenizer: &Tokenizer<Gate<S>>, piece: &str) {
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(piece));
    // The tokenizer pauses for scripts and encodings only, which the gate never asks for.
    while !matches!(tokenizer.feed(&input), TokenizerResult::Done) {}
}

/// The end of the piece that starts at `at`, between two characters.
fn piece_end(text: &str, at: usize) -> usize {
    let mut end = text.len().min(at + PIECE_BYTES);
    while !text.is_char_boundary(end) {
        end += 1;
    }
    end
}
