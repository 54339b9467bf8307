//! The streams of the process as the client uses them: standard output that may be closed under its hands, and the size of the screen.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use rustyline::DefaultEditor;

/// Whether the reader of standard output has gone.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Standard output. When its reader goes (`flott run … | head`), writing fails as ever, and [`stdout_is_closed`] tells why: the program
/// then ends without a word.
pub(super) fn stdout() -> Stdout {
    Stdout { stdout: std::io::stdout() }
}

/// Whether the reader of standard output has gone.
pub(super) fn stdout_is_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

/// See [`stdout`].
pub(super) struct Stdout {
    stdout: std::io::Stdout,
}

fn noted<T>(result: std::io::Result<T>) -> std::io::Result<T> {
    if result.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe) {
        CLOSED.store(true, Ordering::Relaxed);
    }
    result.map_err(|error| std::io::Error::new(error.kind(), format!("cannot write to standard output: {error}")))
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        noted(self.stdout.write(bytes))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        noted(self.stdout.flush())
    }
}

/// Columns and lines of the terminal on standard output; none = it is no terminal.
pub(super) type ScreenSize<'a> = &'a mut dyn FnMut() -> Option<(u16, u16)>;

/// The size of the screen, asked anew each time: terminals are resized.
pub(super) fn screen() -> impl FnMut() -> Option<(u16, u16)> {
    let mut editor = DefaultEditor::new().ok();
    move || editor.as_mut().and_then(DefaultEditor::dimensions)
}
