//! The table of all functions: their names, arguments and results. Used by help texts, the schema,
//! the documentation and the compiler; the functions are implemented in the modules that it names.

pub(crate) mod cipher;
mod digest;

use crate::call::{FunctionDoc, Style};
use crate::types::Types;
use crate::{encoding, lists, moment, numbers, random, scram, text};

/// The function with this full name, including the dot.
pub(crate) fn find(name: &str) -> Option<&'static FunctionDoc> {
    FUNCTIONS.iter().find(|function| function.name == name)
}

macro_rules! functions {
    ($(
        $style:ident $name:literal
        ($($required:ident: $type:ident),* $(; $($optional:ident: $other:ident),+)?)
        -> $result:ident = $body:path, $doc:literal, $example:literal;
    )*) => {
        /// Every function an expression can call, by theme.
        pub static FUNCTIONS: &[FunctionDoc] = &[$(FunctionDoc {
            name: $name,
            arguments: &[$(stringify!($required),)* $($(stringify!($optional),)+)?],
            required: <[&str]>::len(&[$(stringify!($required),)*]),
            doc: say!($doc),
            example: $example,
            style: Style::$style,
            parameters: &[$(Types::$type,)* $($(Types::$other,)+)?],
            result: Types::$result,
            body: $body,
        },)*];
    };
}

#[rustfmt::skip]
functions! {
    Random "random.int" (low: WHOLE, high: WHOLE) -> INT = random::int,
        "a whole number from `low` to `high`, inclusive", "random.int(1, 9)";
    Random "random.u64" () -> INT = random::u64,
        "a random unsigned 64-bit whole number", "random.u64()";
    Random "random.float" (; low: NUMBER, high: NUMBER) -> FLOAT = random::float,
        "a number from `low` (default 0) up to, but not including, `high` (default 1)", "random.float(0.5, 2)";
    Random "random.bool" () -> BOOL = random::bool,
        "true or false, equally likely", "random.bool()";
    Random "random.string" (length: WHOLE; alphabet: TEXT) -> TEXT = random::string,
        "`length` random letters and digits, or random characters from `alphabet`", "random.string(8, 'abc')";
    Random "random.hex" (length: WHOLE) -> TEXT = random::hex,
        "`length` random hexadecimal digits", "random.hex(16)";
    Random "random.bytes" (length: WHOLE) -> BYTES = random::bytes,
        "`length` random bytes", "random.bytes(16)";
    Random "random.uuid" () -> TEXT = random::uuid,
        "a version 4 UUID", "random.uuid()";
    Random "random.choice" (list: LIST) -> ANY = random::choice,
        "a random item of the list; all items are equally likely", "random.choice(['red', 'green'])";
    Random "random.normal" (mean: NUMBER, deviation: NUMBER) -> FLOAT = random::normal,
        "a normally distributed random number", "random.normal(100, 15)";
    Random "random.exponential" (mean: NUMBER) -> FLOAT = random::exponential,
        "an exponentially distributed random number", "random.exponential(3)";

    Clock "now.ns" () -> INT = moment::ns, "nanoseconds since 1970", "now.ns()";
    Clock "now.us" () -> INT = moment::us, "microseconds since 1970", "now.us()";
    Clock "now.ms" () -> INT = moment::ms, "milliseconds since 1970", "now.ms()";
    Clock "now.s" () -> INT = moment::s, "seconds since 1970", "now.s()";
    Clock "now.iso" () -> TEXT = moment::iso,
        "the UTC time in RFC 3339 format, with milliseconds", "now.iso()";
    Clock "now.format" (format: TEXT) -> TEXT = moment::format,
        "the UTC time, formatted with these codes: %Y %y %m %d %H %I %M %S %p %L (ms) %N (ns) %s \
         %j %a %A %b %B %F %T %%",
        "now.format('%Y-%m-%d')";

    Plain "hash.md5" (data: OCTETS) -> TEXT = digest::md5,
        "MD5 in hexadecimal digits", "hash.md5('abc')";
    Plain "hash.sha1" (data: OCTETS) -> TEXT = digest::sha1,
        "SHA-1 in hexadecimal digits", "hash.sha1('abc')";
    Plain "hash.sha256" (data: OCTETS) -> TEXT = digest::sha256,
        "SHA-256 in hexadecimal digits", "hash.sha256('abc')";
    Plain "hash.sha512" (data: OCTETS) -> TEXT = digest::sha512,
        "SHA-512 in hexadecimal digits", "hash.sha512('abc')";
    Plain "hash.md5_base64" (data: OCTETS) -> TEXT = digest::md5_base64,
        "MD5 in base64", "hash.md5_base64('abc')";
    Plain "hash.sha1_base64" (data: OCTETS) -> TEXT = digest::sha1_base64,
        "SHA-1 in base64", "hash.sha1_base64('abc')";
    Plain "hash.sha256_base64" (data: OCTETS) -> TEXT = digest::sha256_base64,
        "SHA-256 in base64", "hash.sha256_base64('abc')";
    Plain "hash.sha512_base64" (data: OCTETS) -> TEXT = digest::sha512_base64,
        "SHA-512 in base64", "hash.sha512_base64('abc')";
    Plain "hash.md5_bytes" (data: OCTETS) -> BYTES = digest::md5_bytes,
        "MD5 as bytes", "hash.md5_bytes('abc')";
    Plain "hash.sha1_bytes" (data: OCTETS) -> BYTES = digest::sha1_bytes,
        "SHA-1 as bytes", "hash.sha1_bytes('abc')";
    Plain "hash.sha256_bytes" (data: OCTETS) -> BYTES = digest::sha256_bytes,
        "SHA-256 as bytes", "hash.sha256_bytes('abc')";
    Plain "hash.sha512_bytes" (data: OCTETS) -> BYTES = digest::sha512_bytes,
        "SHA-512 as bytes", "hash.sha512_bytes('abc')";
    Plain "hash.crc32" (data: OCTETS) -> INT = digest::crc32,
        "CRC-32 as a number", "hash.crc32('abc')";
    Plain "md5" (data: OCTETS) -> TEXT = digest::md5,
        "the same as hash.md5", "md5('abc')";
    Plain "sha256" (data: OCTETS) -> TEXT = digest::sha256,
        "the same as hash.sha256", "sha256('abc')";
    Plain "hmac.sha1" (key: OCTETS, data: OCTETS) -> TEXT = digest::hmac_sha1,
        "HMAC with SHA-1 in hexadecimal digits", "hmac.sha1('key', 'abc')";
    Plain "hmac.sha256" (key: OCTETS, data: OCTETS) -> TEXT = digest::hmac_sha256,
        "HMAC with SHA-256 in hexadecimal digits", "hmac.sha256('key', 'abc')";
    Plain "hmac.sha512" (key: OCTETS, data: OCTETS) -> TEXT = digest::hmac_sha512,
        "HMAC with SHA-512 in hexadecimal digits", "hmac.sha512('key', 'abc')";
    Plain "hmac.sha1_base64" (key: OCTETS, data: OCTETS) -> TEXT = digest::hmac_sha1_base64,
        "HMAC with SHA-1 in base64", "hmac.sha1_base64('key', 'abc')";
    Plain "hmac.sha256_base64" (key: OCTETS, data: OCTETS) -> TEXT = digest::hmac_sha256_base64,
        "HMAC with SHA-256 in base64", "hmac.sha256_base64('key', 'abc')";
    Plain "hmac.sha512_base64" (key: OCTETS, data: OCTETS) -> TEXT = digest::hmac_sha512_base64,
        "HMAC with SHA-512 in base64", "hmac.sha512_base64('key', 'abc')";
    Plain "hmac.sha1_bytes" (key: OCTETS, data: OCTETS) -> BYTES = digest::hmac_sha1_bytes,
        "HMAC with SHA-1 as bytes", "hmac.sha1_bytes('key', 'abc')";
    Plain "hmac.sha256_bytes" (key: OCTETS, data: OCTETS) -> BYTES = digest::hmac_sha256_bytes,
        "HMAC with SHA-256 as bytes", "hmac.sha256_bytes('key', 'abc')";
    Plain "hmac.sha512_bytes" (key: OCTETS, data: OCTETS) -> BYTES = digest::hmac_sha512_bytes,
        "HMAC with SHA-512 as bytes", "hmac.sha512_bytes('key', 'abc')";
    Plain "aes.cbc_encrypt" (key: OCTETS, iv: OCTETS, data: OCTETS) -> BYTES = cipher::cbc_encrypt,
        "the data encrypted with AES-CBC, with PKCS#7 padding; the key has 16, 24 or 32 bytes, the IV 16",
        "aes.cbc_encrypt(hash.md5_bytes('key'), random.bytes(16), 'abc')";
    Plain "aes.cbc_decrypt" (key: OCTETS, iv: OCTETS, data: OCTETS) -> BYTES = cipher::cbc_decrypt,
        "the data decrypted with AES-CBC, without its padding",
        "aes.cbc_decrypt('sixteen byte key', '0123456789abcdef', hex.decode('48912c477c7e885c55e91b8e022bff2d'))";
    Plain "aes.ctr" (key: OCTETS, nonce: OCTETS, data: OCTETS) -> BYTES = cipher::ctr,
        "the data encrypted or decrypted with AES-CTR; `nonce` is the initial counter block of 16 bytes",
        "aes.ctr('sixteen byte key', random.bytes(16), 'abc')";
    Plain "aes.gcm_encrypt" (key: OCTETS, nonce: OCTETS, data: OCTETS) -> BYTES = cipher::gcm_encrypt,
        "the data encrypted with AES-GCM, and its tag of 16 bytes; the key has 16 or 32 bytes, the nonce 12",
        "aes.gcm_encrypt('sixteen byte key', random.bytes(12), 'abc')";
    Plain "aes.gcm_decrypt" (key: OCTETS, nonce: OCTETS, data: OCTETS) -> BYTES = cipher::gcm_decrypt,
        "the data decrypted with AES-GCM, without its tag; a wrong tag causes an evaluation error",
        "aes.gcm_decrypt('sixteen byte key', 'twelve bytes', hex.decode('69330d605b1db66c81852f8614c758bd1ba9ad'))";
    Plain "scram.first" (user: TEXT, nonce: TEXT) -> TEXT = scram::first_message,
        "the first message of a SCRAM login (RFC 5802)", "scram.first('ann', random.string(24))";
    Plain "scram.sha1_last" (first: TEXT, challenge: TEXT, password: OCTETS) -> TEXT = scram::sha1_last,
        "the last message of a SCRAM-SHA-1 login: the response to the challenge of the server",
        "scram.sha1_last(scram.first('ann', 'abc'), 'r=abcd,s=AAAA,i=4096', 'secret')";
    Plain "scram.sha1_signature" (first: TEXT, challenge: TEXT, password: OCTETS) -> TEXT = scram::sha1_signature,
        "the message with which the server must complete a SCRAM-SHA-1 login",
        "scram.sha1_signature(scram.first('ann', 'abc'), 'r=abcd,s=AAAA,i=4096', 'secret')";
    Plain "scram.sha256_last" (first: TEXT, challenge: TEXT, password: OCTETS) -> TEXT = scram::sha256_last,
        "the last message of a SCRAM-SHA-256 login: the response to the challenge of the server",
        "scram.sha256_last(scram.first('ann', 'abc'), 'r=abcd,s=AAAA,i=4096', 'secret')";
    Plain "scram.sha256_signature" (first: TEXT, challenge: TEXT, password: OCTETS) -> TEXT = scram::sha256_signature,
        "the message with which the server must complete a SCRAM-SHA-256 login",
        "scram.sha256_signature(scram.first('ann', 'abc'), 'r=abcd,s=AAAA,i=4096', 'secret')";

    Plain "base64" (data: OCTETS) -> TEXT = encoding::base64_encode,
        "base64 with padding", "base64('user:password')";
    Plain "base64.encode" (data: OCTETS) -> TEXT = encoding::base64_encode,
        "the same as base64", "base64.encode('abc')";
    Plain "base64.url" (data: OCTETS) -> TEXT = encoding::base64_url,
        "base64 for URLs, without padding", "base64.url('abc')";
    Plain "base64.decode" (text: TEXT) -> BYTES = encoding::base64_decode,
        "the bytes decoded from standard or URL base64; string(…) converts them to text",
        "base64.decode('YWJj')";
    Plain "hex" (data: OCTETS) -> TEXT = encoding::hex_encode,
        "hexadecimal digits", "hex('abc')";
    Plain "hex.encode" (data: OCTETS) -> TEXT = encoding::hex_encode,
        "the same as hex", "hex.encode('abc')";
    Plain "hex.decode" (text: TEXT) -> BYTES = encoding::hex_decode,
        "the bytes decoded from hexadecimal digits; string(…) converts them to text",
        "hex.decode('616263')";
    Plain "json" (value: ANY) -> TEXT = encoding::json_encode,
        "the value as JSON", "json({'a': [1, 'x']})";
    Plain "json.encode" (value: ANY) -> TEXT = encoding::json_encode,
        "the same as json", "json.encode([1, 2])";
    Plain "json.parse" (text: OCTETS) -> ANY = encoding::json_parse,
        "the value parsed from JSON text", "json.parse('{\"a\": 1}').a";
    Plain "url.encode" (text: OCTETS) -> TEXT = encoding::url_encode,
        "the text percent-encoded, except for letters, digits and - . _ ~", "url.encode('a b&c')";
    Plain "url.decode" (text: TEXT) -> TEXT = encoding::url_decode,
        "the percent-decoded text; bytes that are not UTF-8 cause an evaluation error", "url.decode('a%20b')";

    Variadic "min" (numbers: NUMBER_OR_LIST) -> NUMBER = numbers::min,
        "the smallest of several numbers, or of the numbers in a list", "min(3, 1, 2)";
    Variadic "max" (numbers: NUMBER_OR_LIST) -> NUMBER = numbers::max,
        "the largest of several numbers, or of the numbers in a list", "max(3, 1, 2)";
    Plain "abs" (number: NUMBER) -> NUMBER = numbers::abs,
        "the absolute value", "abs(-5)";
    Plain "round" (number: NUMBER) -> NUMBER = numbers::round,
        "the nearest whole number; halves are rounded away from zero", "round(2.5)";
    Plain "floor" (number: NUMBER) -> NUMBER = numbers::floor,
        "the number rounded down to a whole number", "floor(2.9)";
    Plain "ceil" (number: NUMBER) -> NUMBER = numbers::ceil,
        "the number rounded up to a whole number", "ceil(2.1)";

    Plain "int" (value: ANY) -> INT = numbers::int,
        "a whole number, parsed from text or truncated from a number", "int('42')";
    Plain "uint" (value: ANY) -> INT = numbers::uint,
        "an unsigned whole number", "uint('42')";
    Plain "double" (value: ANY) -> FLOAT = numbers::double,
        "a floating-point number", "double('1.5')";
    Plain "bool" (value: ANY) -> BOOL = numbers::bool,
        "true or false, from the text `true` or `false`", "bool('true')";
    Plain "string" (value: ANY) -> TEXT = text::string,
        "the value as text", "string(42)";
    Plain "bytes" (value: ANY) -> BYTES = text::bytes,
        "the bytes of the value; text is encoded as UTF-8", "bytes('abc')";
    Plain "bytes.big" (number: WHOLE, size: WHOLE) -> BYTES = numbers::big_endian,
        "the whole number in `size` bytes (1 to 8), most significant byte first", "bytes.big(300, 2)";
    Plain "bytes.little" (number: WHOLE, size: WHOLE) -> BYTES = numbers::little_endian,
        "the whole number in `size` bytes (1 to 8), least significant byte first", "bytes.little(300, 4)";
    Plain "xor" (data: OCTETS, other: OCTETS) -> BYTES = encoding::xor,
        "the exclusive or of two byte sequences of the same length",
        "xor(hash.sha1_bytes('abc'), hash.sha1_bytes('def'))";

    Member "size" (value: SIZED) -> INT = lists::size,
        "the number of characters, bytes, items or entries", "'abc'.size()";
    Member "contains" (text: TEXT, part: TEXT) -> BOOL = text::contains,
        "true if the text contains `part`", "'abc'.contains('b')";
    Member "startsWith" (text: TEXT, start: TEXT) -> BOOL = text::starts_with,
        "true if the text starts with `start`", "'abc'.startsWith('a')";
    Member "endsWith" (text: TEXT, end: TEXT) -> BOOL = text::ends_with,
        "true if the text ends with `end`", "'abc'.endsWith('c')";
    Member "matches" (text: TEXT, pattern: TEXT) -> BOOL = text::matches,
        "true if the regular expression matches anywhere in the text", "'abc'.matches('^a.c$')";
    Member "lowerAscii" (text: TEXT) -> TEXT = text::lower_ascii,
        "the text with A to Z in lower case", "'ABC'.lowerAscii()";
    Member "upperAscii" (text: TEXT) -> TEXT = text::upper_ascii,
        "the text with a to z in upper case", "'abc'.upperAscii()";
    Member "lower" (text: TEXT) -> TEXT = text::lower,
        "the text with all letters in lower case", "'ÄBC'.lower()";
    Member "upper" (text: TEXT) -> TEXT = text::upper,
        "the text with all letters in upper case", "'äbc'.upper()";
    Member "trim" (text: TEXT) -> TEXT = text::trim,
        "the text without leading and trailing white space", "' abc '.trim()";
    Member "replace" (text: TEXT, old: TEXT, new: TEXT; limit: WHOLE) -> TEXT = text::replace,
        "the text with every `old`, or the first `limit` of them, replaced by `new`", "'a-b-c'.replace('-', '+')";
    Member "split" (text: TEXT, separator: TEXT; limit: WHOLE) -> LIST = text::split,
        "a list of the substrings between separators, at most `limit`", "'a,b,c'.split(',')";
    Member "join" (list: LIST; separator: TEXT) -> TEXT = text::join,
        "the items joined into one text", "['a', 'b'].join('-')";
    Member "substring" (text: TEXT, start: WHOLE; end: WHOLE) -> TEXT = text::substring,
        "the characters from `start` up to, but not including, `end`", "'abcdef'.substring(1, 3)";
    Member "charAt" (text: TEXT, index: WHOLE) -> TEXT = text::char_at,
        "the character at this index, counted from 0", "'abc'.charAt(1)";
    Member "indexOf" (text: TEXT, part: TEXT; start: WHOLE) -> INT = text::index_of,
        "the index of the first occurrence of `part`, counted from 0, or -1", "'banana'.indexOf('an')";
    Member "lastIndexOf" (text: TEXT, part: TEXT) -> INT = text::last_index_of,
        "the index of the last occurrence of `part`, counted from 0, or -1", "'banana'.lastIndexOf('an')";
    Member "reverse" (value: TEXT_OR_LIST) -> TEXT_OR_LIST = lists::reverse,
        "the characters or items in reverse order", "'abc'.reverse()";
    Member "padStart" (text: TEXT, length: WHOLE; fill: TEXT) -> TEXT = text::pad_start,
        "the text, padded at the start to this length with spaces or `fill`",
        "string(7).padStart(3, '0')";
    Member "padEnd" (text: TEXT, length: WHOLE; fill: TEXT) -> TEXT = text::pad_end,
        "the text, padded at the end to this length with spaces or `fill`", "'abc'.padEnd(5, '.')";
}
