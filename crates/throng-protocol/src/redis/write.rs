//! Writes commands as lists of texts.

/// Writes a command with these words.
pub fn write_command(out: &mut Vec<u8>, words: &[&[u8]]) {
    write_head(out, words.len());
    words.iter().for_each(|word| write_word(out, word));
}

/// Writes the head of a command; [`write_word`] writes its words.
pub fn write_head(out: &mut Vec<u8>, words: usize) {
    write_count(out, b'*', words);
}

pub fn write_word(out: &mut Vec<u8>, word: &[u8]) {
    write_count(out, b'$', word.len());
    out.extend_from_slice(word);
    out.extend_from_slice(b"\r\n");
}

fn write_count(out: &mut Vec<u8>, mark: u8, count: usize) {
    out.push(mark);
    let mut digits = [0; 20];
    let (mut at, mut left) = (digits.len(), count);
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
    out.extend_from_slice(b"\r\n");
}
