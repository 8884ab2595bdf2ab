//! Content-Length framing: a header block, a blank line, and a body of that many bytes.
//!
//! After a broken header the start of the next frame is unknown, so every error here ends the link.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

const HEADER_BYTES: usize = 4096;
const HEADER_LINES: usize = 16;
const READ_AHEAD: usize = 64 * 1024;
const SHOWN: usize = 80; // bytes of a broken header in the error

/// Why no further frame can be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum FrameError {
    /// The bytes are no frame.
    Malformed(String),
    /// The frame is above the limit.
    TooLarge {
        /// The announced size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: usize,
    },
    /// The stream has failed, or has ended within a frame.
    Io(io::Error),
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(problem) => f.write_str(problem),
            Self::TooLarge { size, limit } => write!(f, "frame too large: {size} bytes, the limit is {limit}"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FrameError {}

impl From<io::Error> for FrameError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Reads frames from a stream.
pub struct FrameReader<R> {
    input: BufReader<R>,
    limit: usize,
}

impl<R: Read> FrameReader<R> {
    /// Returns a reader of frames whose bodies have at most `limit` bytes.
    pub fn new(input: R, limit: usize) -> Self {
        Self { input: BufReader::with_capacity(READ_AHEAD, input), limit }
    }

    /// Returns the body of the next frame, `None` at the end of the stream.
    ///
    /// # Errors
    /// The stream fails, ends within a frame, or holds something else than a frame.
    pub fn read(&mut self) -> Result<Option<Vec<u8>>, FrameError> {
        let Some(size) = self.read_header()? else { return Ok(None) };
        if size > self.limit as u64 {
            return Err(FrameError::TooLarge { size, limit: self.limit });
        }
        // Grows as the bytes arrive: an announced length alone takes no memory.
        let mut body = Vec::with_capacity(usize::try_from(size).unwrap_or(self.limit).min(READ_AHEAD));
        if self.input.by_ref().take(size).read_to_end(&mut body)? as u64 != size {
            return Err(ended_within("a body"));
        }
        Ok(Some(body))
    }

    fn read_header(&mut self) -> Result<Option<u64>, FrameError> {
        let mut length = None;
        let mut room = HEADER_BYTES;
        for number in 0..=HEADER_LINES {
            let mut line = Vec::new();
            let read = self.input.by_ref().take(room as u64).read_until(b'\n', &mut line)?;
            room -= read;
            if read == 0 && number == 0 {
                return Ok(None);
            }
            let Some(line) = line.strip_suffix(b"\r\n") else {
                return Err(if line.ends_with(b"\n") || room == 0 || !looks_like_header(&line) {
                    malformed("not a header", &line)
                } else {
                    ended_within("a header")
                });
            };
            if line.is_empty() {
                return match length {
                    Some(length) => Ok(Some(length)),
                    None => Err(malformed("a header without Content-Length", line)),
                };
            }
            read_field(line, &mut length)?;
        }
        Err(FrameError::Malformed(format!("a header of more than {HEADER_LINES} lines")))
    }
}

/// Appends the frame of a body to `frame`.
pub fn write_frame(body: &[u8], frame: &mut Vec<u8>) {
    frame.reserve(body.len() + 32);
    frame.extend_from_slice(b"Content-Length: ");
    frame.extend_from_slice(body.len().to_string().as_bytes());
    frame.extend_from_slice(b"\r\n\r\n");
    frame.extend_from_slice(body);
}

fn read_field(line: &[u8], length: &mut Option<u64>) -> Result<(), FrameError> {
    let text = std::str::from_utf8(line).map_err(|_| malformed("not a header", line))?;
    let Some((name, value)) = text.split_once(':') else { return Err(malformed("not a header", line)) };
    let value = value.trim_matches([' ', '\t']);
    if name.eq_ignore_ascii_case("Content-Length") {
        let is_number = (1..=10).contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_digit());
        let parsed = value.parse().ok().filter(|_| is_number);
        let Some(parsed) = parsed else { return Err(malformed("not a Content-Length", line)) };
        if length.replace(parsed).is_some() {
            return Err(malformed("a second Content-Length", line));
        }
    } else if name.eq_ignore_ascii_case("Content-Type") && !is_utf8(value) {
        return Err(malformed("a charset other than UTF-8", line));
    }
    Ok(())
}

fn is_utf8(content_type: &str) -> bool {
    let lower = content_type.to_ascii_lowercase();
    lower
        .split(';')
        .filter_map(|part| part.trim().strip_prefix("charset="))
        .all(|charset| matches!(charset.trim_matches('"'), "utf-8" | "utf8"))
}

fn looks_like_header(line: &[u8]) -> bool {
    let name = b"content-length:";
    let shared = line.len().min(name.len());
    line[..shared].eq_ignore_ascii_case(&name[..shared])
}

fn malformed(problem: &str, found: &[u8]) -> FrameError {
    let shown = String::from_utf8_lossy(&found[..found.len().min(SHOWN)]);
    FrameError::Malformed(format!("{problem}: {shown:?}"))
}

fn ended_within(what: &str) -> FrameError {
    io::Error::new(io::ErrorKind::UnexpectedEof, format!("the stream has ended within {what}")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Option<Vec<u8>>, FrameError> {
        FrameReader::new(bytes, 1000).read()
    }

    #[test]
    fn a_written_frame_is_read_back() {
        let mut frame = Vec::new();
        write_frame("käse".as_bytes(), &mut frame);
        assert_eq!(frame, "Content-Length: 5\r\n\r\nkäse".as_bytes());
        assert_eq!(read(&frame).unwrap().unwrap(), "käse".as_bytes());
    }

    #[test]
    fn the_end_of_the_stream_between_frames_is_no_error() {
        assert!(read(b"").unwrap().is_none());
    }

    #[test]
    fn headers_are_read_in_any_case_with_other_headers_and_spaces() {
        let frame = b"content-type: x; charset=UTF-8\r\nCONTENT-LENGTH: \t 2 \r\nother: 1\r\n\r\n{}";
        assert_eq!(read(frame).unwrap().unwrap(), b"{}");
    }

    #[test]
    fn broken_headers_are_refused_and_quoted() {
        for broken in [
            "hello\n",
            "Content-Length: 2\n\n{}",
            "Content-Length: x\r\n\r\n{}",
            "Content-Length: -2\r\n\r\n{}",
            "Content-Length: 12345678901\r\n\r\n{}",
            "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
            "Other: 2\r\n\r\n{}",
            "Content-Length: 2\r\nContent-Type: a; charset=latin1\r\n\r\n{}",
        ] {
            let error = read(broken.as_bytes()).unwrap_err();
            assert!(matches!(error, FrameError::Malformed(_)), "{broken:?}: {error}");
        }
        assert!(read(b"a stray print\n").unwrap_err().to_string().contains("a stray print"));
    }

    #[test]
    fn an_end_within_a_frame_is_an_error() {
        for partial in ["Content-Le", "Content-Length: 5\r\n", "Content-Length: 5\r\n\r\nab"] {
            assert!(matches!(read(partial.as_bytes()), Err(FrameError::Io(_))), "{partial:?}");
        }
    }

    #[test]
    fn a_frame_above_the_limit_is_refused_before_it_is_read() {
        let error = read(b"Content-Length: 1001\r\n\r\n").unwrap_err();
        assert!(matches!(error, FrameError::TooLarge { size: 1001, limit: 1000 }));
    }

    #[test]
    fn a_header_without_an_end_is_refused() {
        let endless = [b"Content-Length: 1\r\n".as_slice(), &b"x: y\r\n".repeat(50)].concat();
        assert!(matches!(read(&endless), Err(FrameError::Malformed(_))));
        assert!(matches!(read(&[b'C'; 10_000]), Err(FrameError::Malformed(_))));
    }
}
