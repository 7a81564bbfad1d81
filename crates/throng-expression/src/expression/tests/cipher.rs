//! `aes.*` against the vectors of NIST and of the authors of GCM, and every evaluation error.

use throng_base::Random;

use super::{World, check, compile, outcome};

/// NIST SP 800-38A, F: the plain text of all modes, and the keys.
const PLAIN: &str = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51\
                     30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710";
const KEY_128: &str = "2b7e151628aed2a6abf7158809cf4f3c";
const KEY_192: &str = "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b";
const KEY_256: &str = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4";
const IV: &str = "000102030405060708090a0b0c0d0e0f";

/// The result of a function of three arguments in hexadecimal digits, or why it has none.
fn hex_of(function: &str, [key, block, data]: [&str; 3]) -> String {
    let [key, block, data] = [key, block, data].map(|digits| format!("hex.decode('{digits}')"));
    outcome(&format!("hex({function}({key}, {block}, {data}))")).trim_matches('"').to_string()
}

/// F.2.1 to F.2.6. The padding adds a block.
#[test]
fn cbc_matches_the_vectors_of_nist() {
    for (key, encrypted) in [
        (
            KEY_128,
            "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2\
             73bed6b8e3c1743b7116e69e222295163ff1caa1681fac09120eca307586e1a7",
        ),
        (
            KEY_192,
            "4f021db243bc633d7178183a9fa071e8b4d9ada9ad7dedf4e5e738763f69145a\
             571b242012fb7ae07fa9baac3df102e008b0e27988598881d920a9e64f5615cd",
        ),
        (
            KEY_256,
            "f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d\
             39f23369a9d9bacfa530e26304231461b2eb05e2c39be9fcda6c19078c6a9d1b",
        ),
    ] {
        let found = hex_of("aes.cbc_encrypt", [key, IV, PLAIN]);
        assert_eq!((&found[..encrypted.len()], found.len()), (encrypted, encrypted.len() + 32));
        assert_eq!(hex_of("aes.cbc_decrypt", [key, IV, &found]), PLAIN);
    }
}

/// F.5.1 to F.5.6.
#[test]
fn ctr_matches_the_vectors_of_nist() {
    const COUNTER: &str = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";
    for (key, encrypted) in [
        (
            KEY_128,
            "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff\
             5ae4df3edbd5d35e5b4f09020db03eab1e031dda2fbe03d1792170a0f3009cee",
        ),
        (
            KEY_192,
            "1abc932417521ca24f2b0459fe7e6e0b090339ec0aa6faefd5ccc2c6f4ce8e94\
             1e36b26bd1ebc670d1bd1d665620abf74f78a7f6d29809585a97daec58c6b050",
        ),
        (
            KEY_256,
            "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5\
             2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6",
        ),
    ] {
        assert_eq!(hex_of("aes.ctr", [key, COUNTER, PLAIN]), encrypted);
        assert_eq!(hex_of("aes.ctr", [key, COUNTER, encrypted]), PLAIN);
        // A part of a block is the start of the whole one.
        assert_eq!(hex_of("aes.ctr", [key, COUNTER, &PLAIN[..42]]), encrypted[..42]);
    }
    // After the last counter comes the first.
    let (last, first) = ("f".repeat(32), "0".repeat(32));
    let wrapped = hex_of("aes.ctr", [KEY_128, &last, PLAIN]);
    assert_eq!(wrapped[32..], hex_of("aes.ctr", [KEY_128, &first, &PLAIN[32..]]));
}

/// McGrew and Viega, The Galois/Counter Mode of Operation, appendix B: the cases without further
/// authenticated data.
#[test]
fn gcm_matches_the_vectors_of_its_authors() {
    const PLAIN: &str = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72\
                         1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255";
    const NONCE: &str = "cafebabefacedbaddecaf888";
    let (zeros, key) = ("0".repeat(64), "feffe9928665731c6d6a8f9467308308".repeat(2));
    for (number, key, nonce, plain, encrypted) in [
        (1, &zeros[..32], &zeros[..24], "", "58e2fccefa7e3061367f1d57a4e7455a"),
        (
            2,
            &zeros[..32],
            &zeros[..24],
            &zeros[..32],
            "0388dace60b6a392f328c2b971b2fe78ab6e47d42cec13bdf53a67b21257bddf",
        ),
        (
            3,
            &key[..32],
            NONCE,
            PLAIN,
            "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e\
             21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091473f5985\
             4d5c2af327cd64a62cf35abd2ba6fab4",
        ),
        (13, &zeros, &zeros[..24], "", "530f8afbc74536b9a963b4f1c4cb738b"),
        (
            14,
            &zeros,
            &zeros[..24],
            &zeros[..32],
            "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919",
        ),
        (
            15,
            &key,
            NONCE,
            PLAIN,
            "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa\
             8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad\
             b094dac5d93471bdec1a502270e3cc6c",
        ),
    ] {
        assert_eq!(hex_of("aes.gcm_encrypt", [key, nonce, plain]), encrypted, "{number}");
        assert_eq!(hex_of("aes.gcm_decrypt", [key, nonce, encrypted]), plain, "{number}");
    }
}

const MODES: [(&str, &str, &[u64], u64); 3] = [
    ("aes.cbc_encrypt", "aes.cbc_decrypt", &[16, 24, 32], 16),
    ("aes.ctr", "aes.ctr", &[16, 24, 32], 16),
    ("aes.gcm_encrypt", "aes.gcm_decrypt", &[16, 32], 12),
];

#[test]
fn data_of_any_length_is_decrypted_again() {
    let mut random = Random::new(38);
    let mut world = World::new(1);
    let mut of =
        |length: u64| -> Vec<u8> { (0..length).map(|_| random.next_u64() as u8).collect() };
    for (encrypt, decrypt, keys, block) in MODES {
        let encrypted = compile(&format!("{encrypt}(saved.token, saved.map, saved.later)"));
        let decrypted = compile(&format!("{decrypt}(saved.token, saved.map, saved.later)"));
        let (encrypted, decrypted) = (encrypted.expect("compiles"), decrypted.expect("compiles"));
        for length in (0..100).chain([1_000, 4_095, 65_536]) {
            let key = keys[length as usize % keys.len()];
            let data = of(length);
            world.slots[..3].clone_from_slice(&[of(key).into(), of(block).into(), data[..].into()]);
            let out = encrypted.evaluate(&mut world).expect("encrypts");
            let more = match encrypt {
                "aes.cbc_encrypt" => 16 - length % 16,
                "aes.ctr" => 0,
                _ => 16,
            };
            assert_eq!(out.len(), Some((length + more) as usize), "{encrypt} {length}");
            assert!(length < 16 || out.as_octets() != Some(&data), "{encrypt} {length}");
            world.slots[2] = out;
            let plain = decrypted.evaluate(&mut world).expect("decrypts");
            assert_eq!(plain.as_octets(), Some(&data[..]), "{decrypt} {length}");
        }
    }
}

/// Data costs evaluation steps, so that the size of a result has a limit.
#[test]
fn too_much_data_is_an_evaluation_error() {
    let mut world = World::new(1);
    let of = |length: usize| vec![0; length].into();
    for (encrypt, decrypt, _, block) in MODES {
        for function in [encrypt, decrypt] {
            let it = compile(&format!("{function}(saved.token, saved.map, saved.later)"));
            world.slots[..3].clone_from_slice(&[of(16), of(block as usize), of(16 << 20)]);
            let error = it.expect("compiles").evaluate(&mut world).expect_err("too much data");
            assert!(error.0.english().contains("too many steps"), "{function}: {error:?}");
        }
    }
}

/// Constants of a wrong length are marked even if the data is not known yet.
#[test]
fn keys_and_ivs_of_a_wrong_length_are_reported() {
    check(&[
        (
            "aes.ctr(saved.token, saved.token, 'a')",
            "fault: the argument `key` of `aes.ctr` has 5 bytes; expected: 16, 24, 32",
        ),
        (
            "aes.cbc_encrypt('short', random.bytes(16), saved.token)",
            "wrong-arguments at `'short'`: the argument `key` of `aes.cbc_encrypt` has 5 bytes; \
             expected: 16, 24, 32",
        ),
        (
            "aes.cbc_decrypt(saved.token, vars.room, saved.token)",
            "wrong-arguments at `vars.room`: the argument `iv` of `aes.cbc_decrypt` has 5 bytes; \
             expected: 16",
        ),
        (
            "aes.ctr(saved.token, 'twelve bytes', saved.token)",
            "wrong-arguments at `'twelve bytes'`: the argument `nonce` of `aes.ctr` has 12 bytes; \
             expected: 16",
        ),
        (
            "aes.gcm_encrypt('AES-192 has such keys 24', random.bytes(12), saved.token)",
            "wrong-arguments at `'AES-192 has such keys 24'`: the argument `key` of \
             `aes.gcm_encrypt` has 24 bytes; expected: 16, 32",
        ),
        (
            "aes.gcm_decrypt(saved.token, 'sixteen byte key', saved.token)",
            "wrong-arguments at `'sixteen byte key'`: the argument `nonce` of `aes.gcm_decrypt` \
             has 16 bytes; expected: 12",
        ),
    ]);
}

const NOT_PADDED: &str = "the decrypted data does not end with PKCS#7 padding: use the key and the \
                          IV with which it was encrypted";

#[test]
fn data_that_cannot_be_decrypted_is_reported() {
    let cbc = |length: usize| {
        format!("`aes.cbc_decrypt` takes one or more blocks of 16 bytes, not {length} bytes")
    };
    let tag = "the GCM tag does not match: use the key and the nonce with which the data was \
               encrypted, and all of its bytes";
    let short = "`aes.gcm_decrypt` takes data that ends with a tag of 16 bytes, not 15 bytes";
    for (function, block, data, message) in [
        ("aes.cbc_decrypt", IV, 17, &*cbc(17)),
        ("aes.cbc_decrypt", IV, 15, &*cbc(15)),
        ("aes.cbc_decrypt", IV, 0, &*cbc(0)),
        ("aes.cbc_decrypt", IV, 32, NOT_PADDED),
        ("aes.gcm_decrypt", &IV[..24], 15, short),
        ("aes.gcm_decrypt", &IV[..24], 16, tag),
        ("aes.gcm_decrypt", &IV[..24], 40, tag),
    ] {
        let data = "00".repeat(data);
        let found = hex_of(function, [KEY_128, block, &data]);
        assert!(found.starts_with("wrong-arguments at "), "{found}");
        assert!(found.ends_with(&format!(": {message}")), "{found}");
    }
}

#[test]
fn only_the_padding_of_pkcs_7_is_removed() {
    let zeros = "00".repeat(16);
    for (end, bytes) in [
        ("00", None),
        ("01", Some(15)),
        ("0202", Some(14)),
        ("0302", None),
        ("10", None),
        (&"10".repeat(16), Some(0)),
        ("11", None),
    ] {
        let plain = format!("{}{end}", &zeros[end.len()..]);
        // CTR encrypts zeros to the encrypted counter: CBC without padding, with an IV of zeros.
        let encrypted = hex_of("aes.ctr", [KEY_128, &plain, &zeros]);
        let found = hex_of("aes.cbc_decrypt", [KEY_128, &zeros, &encrypted]);
        match bytes {
            Some(bytes) => assert_eq!(found, plain[..2 * bytes]),
            None => assert!(found.ends_with(NOT_PADDED), "{end}: {found}"),
        }
    }
}

/// No single bit of an encrypted message may be changed.
#[test]
fn gcm_detects_each_changed_bit() {
    let (key, nonce) = ("00".repeat(32), "00".repeat(12));
    let encrypted = hex_of("aes.gcm_encrypt", [&key, &nonce, "616263"]);
    let bytes: Vec<u8> = (0..encrypted.len() / 2)
        .map(|at| u8::from_str_radix(&encrypted[2 * at..2 * at + 2], 16).expect("hexadecimal"))
        .collect();
    for bit in 0..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let changed: String = changed.iter().map(|byte| format!("{byte:02x}")).collect();
        let found = hex_of("aes.gcm_decrypt", [&key, &nonce, &changed]);
        assert!(found.contains("does not match"), "{bit}: {found}");
    }
}
