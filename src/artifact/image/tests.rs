//! Images of every kind that is taken, of none, and broken ones.

use ::image::codecs::webp::WebPEncoder;
use ::image::{
    GrayImage, ImageBuffer, Luma, LumaA, Rgb, RgbImage, Rgba, RgbaImage, load_from_memory,
};
use proptest::prelude::*;

use super::*;

const RED: Rgb<u8> = Rgb([255, 0, 0]);
const BLUE: Rgb<u8> = Rgb([0, 0, 255]);

/// A blue image with a red block in its upper left corner.
fn marked(width: u32, height: u32) -> DynamicImage {
    RgbImage::from_fn(width, height, |x, y| if x < 16 && y < 16 { RED } else { BLUE }).into()
}

/// Pixels that no format makes small; the same on every run.
fn noise(width: u32, height: u32) -> RgbImage {
    let mut state = 1_u32;
    RgbImage::from_fn(width, height, |_, _| {
        Rgb([(); 3].map(|()| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        }))
    })
}

fn webp(image: &DynamicImage) -> Vec<u8> {
    let mut bytes = Vec::new();
    image.write_with_encoder(WebPEncoder::new_lossless(&mut bytes)).unwrap();
    bytes
}

/// Bytes as hexadecimal digits; spaces are for the reader.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.chars().filter_map(|c| c.to_digit(16)).map(|d| u8::try_from(d).unwrap()).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 }
        })
    })
}

fn chunk(name: [u8; 4], content: &[u8]) -> Vec<u8> {
    let named = [&name, content].concat();
    let length = u32::try_from(content.len()).unwrap().to_be_bytes();
    [&length[..], &named, &crc(&named).to_be_bytes()].concat()
}

/// Puts a chunk right behind the header of a PNG.
fn with_chunk(png: &[u8], chunk: &[u8]) -> Vec<u8> {
    [&png[..33], chunk, &png[33..]].concat()
}

/// A PNG of two pixels, a color and a half transparent one, out of a palette.
fn palette() -> Vec<u8> {
    [
        hex("89504e470d0a1a0a"),
        chunk(*b"IHDR", &hex("00000002 00000001 08 03 00 00 00")),
        chunk(*b"PLTE", &hex("ff0000 0000ff")),
        chunk(*b"tRNS", &hex("ff80")),
        // A stored block: the filter and two indices, then their Adler checksum.
        chunk(*b"IDAT", &hex("7801 01 0300 fcff 00 00 01 00040002")),
        chunk(*b"IEND", &[]),
    ]
    .concat()
}

/// A JPEG of 8 × 8 pixels of middle gray in each of its components.
fn flat_jpeg(frame: &str, components: u8, scan: &str) -> Vec<u8> {
    let count = usize::from(components);
    let mut bytes = hex("ffd8 ffee000e 41646f6265 0064 0000 0000 00 ffdb0043 00");
    bytes.extend([1; 64]);
    bytes.extend(hex(frame));
    bytes.extend([0, 8 + 3 * components, 8, 0, 8, 0, 8, components]);
    (1..=components).for_each(|id| bytes.extend([id, 0x11, 0]));
    for class in ["00", "10"] {
        bytes.extend(hex(&format!("ffc40014 {class} 01 {} 00", "00".repeat(15))));
    }
    bytes.extend([0xff, 0xda, 0, 6 + 2 * components, components]);
    (1..=components).for_each(|id| bytes.extend([id, 0]));
    bytes.extend(hex(scan));
    // A bit for each block and its end; no stuffing is needed.
    bytes.extend(std::iter::repeat_n(0, count.div_ceil(4)));
    bytes.extend([0xff, 0xd9]);
    bytes
}

/// The lossy data of a red WebP of 8 × 8 pixels; the encoder here makes only lossless ones.
const VP8: &str = "56503820 28000000 7001009d012a0800080005407c25a0027401400000feeb36fd554f5f8ddffc43\
                   9fd6dff729ac4000";

fn lossy_webp() -> Vec<u8> {
    hex(&format!("52494646 34000000 57454250 {VP8}"))
}

/// The same pixels, less than half opaque.
fn see_through_webp() -> Vec<u8> {
    let alpha = "414c5048 0a000000 010750b288084444ff03";
    let header = "56503858 0a000000 10000000 070000 070000";
    hex(&format!("52494646 58000000 57454250 {header} {alpha} {VP8}"))
}

fn tiff(orientation: u8) -> Vec<u8> {
    hex(&format!("4d4d002a 00000008 0001 0112 0003 00000001 {orientation:04x}0000 00000000"))
}

fn oriented_jpeg(image: &DynamicImage, orientation: u8) -> Vec<u8> {
    let exif = [b"Exif\0\0", &tiff(orientation)[..]].concat();
    let length = u8::try_from(exif.len() + 2).unwrap();
    let jpeg = jpeg(image, 90).unwrap();
    [&jpeg[..2], &[0xff, 0xe1, 0, length], &exif, &jpeg[2..]].concat()
}

/// A WebP with its image data as `image` writes them, and the given metadata.
fn extended_webp(image: &DynamicImage, flags: u8, exif: &[u8]) -> Vec<u8> {
    let [width, height] = [image.width(), image.height()].map(|side| (side - 1).to_le_bytes());
    let mut body = b"WEBPVP8X\x0a\0\0\0".to_vec();
    body.extend([&[flags, 0, 0, 0], &width[..3], &height[..3]].concat());
    body.extend(&webp(image)[12..]);
    body.extend(b"EXIF");
    body.extend(u32::try_from(exif.len()).unwrap().to_le_bytes());
    body.extend(exif);
    [b"RIFF", &u32::try_from(body.len()).unwrap().to_le_bytes()[..], &body].concat()
}

fn decoded(model: &Encoded) -> RgbImage {
    assert_eq!(Kind::sniff(&model.bytes), Some(model.kind));
    assert_eq!(import(&model.bytes).unwrap().model, None, "a model takes what was made for it");
    let image = load_from_memory(&model.bytes).unwrap().into_rgb8();
    assert_eq!(image.dimensions(), (model.width, model.height));
    image
}

/// Tells which corner is red, as `(right, lower)`.
fn red_corner(image: &RgbImage) -> (bool, bool) {
    let (right, lower) = (image.width() - 4, image.height() - 4);
    let corners = [(false, false), (true, false), (false, true), (true, true)];
    let is_red = |corner: &(bool, bool)| {
        let at = (if corner.0 { right } else { 3 }, if corner.1 { lower } else { 3 });
        image.get_pixel(at.0, at.1)[0] > 128
    };
    let found: Vec<_> = corners.into_iter().filter(is_red).collect();
    assert_eq!(found.len(), 1, "one corner is red");
    found[0]
}

#[test]
fn the_content_tells_the_kind() {
    let table: [(&[u8], Option<Kind>); 9] = [
        (b"\x89PNG\r\n\x1a\n", Some(Kind::Png)),
        (b"\x89PNG\r\n\x1a\r", None),
        (b"\xff\xd8\xff", Some(Kind::Jpeg)),
        (b"\xff\xd8", None),
        (b"RIFF\0\0\0\0WEBP", Some(Kind::Webp)),
        (b"RIFF\0\0\0\0WEB", None),
        (b"RIFF\0\0\0\0WAVE", None),
        (b"GIF89a", None),
        (b"", None),
    ];
    for (head, kind) in table {
        assert_eq!(Kind::sniff(head), kind, "{head:x?}");
    }
    assert_eq!(import(b"GIF89a"), Err(ImageError::Unknown));
    assert_eq!(Kind::Jpeg.mime_type(), "image/jpeg");
    assert_eq!(Kind::Jpeg.extension(), "jpg");
}

#[test]
fn every_variety_is_read() {
    let rgb = marked(20, 17);
    let rgba = RgbaImage::from_pixel(5, 6, Rgba([1, 2, 3, 4])).into();
    let table = [
        (png(&rgb).unwrap(), Kind::Png, 20, 17),
        (png(&rgba).unwrap(), Kind::Png, 5, 6),
        (png(&GrayImage::new(3, 4).into()).unwrap(), Kind::Png, 3, 4),
        (png(&ImageBuffer::from_pixel(3, 4, Luma([7_u16])).into()).unwrap(), Kind::Png, 3, 4),
        (png(&ImageBuffer::from_pixel(3, 4, LumaA([7_u8, 9])).into()).unwrap(), Kind::Png, 3, 4),
        (png(&ImageBuffer::from_pixel(1, 2, Rgba([7_u16; 4])).into()).unwrap(), Kind::Png, 1, 2),
        (palette(), Kind::Png, 2, 1),
        (jpeg(&rgb, 80).unwrap(), Kind::Jpeg, 20, 17),
        (jpeg(&GrayImage::new(3, 4).into(), 80).unwrap(), Kind::Jpeg, 3, 4),
        (flat_jpeg("ffc0", 4, "003f00"), Kind::Jpeg, 8, 8),
        (flat_jpeg("ffc2", 1, "000000"), Kind::Jpeg, 8, 8),
        (webp(&rgb), Kind::Webp, 20, 17),
        (lossy_webp(), Kind::Webp, 8, 8),
        (see_through_webp(), Kind::Webp, 8, 8),
        (webp(&rgba), Kind::Webp, 5, 6),
    ];
    for (row, (bytes, kind, width, height)) in table.into_iter().enumerate() {
        let original = Form { kind, width, height };
        assert_eq!(identify(&bytes), Ok(original), "row {row}");
        assert_eq!(import(&bytes), Ok(Imported { original, model: None }), "row {row}");
        // Every variety can also be made anew.
        let padded = [bytes, vec![0; MAX_BYTES]].concat();
        let model = import(&padded).unwrap().model.expect("the file is too large");
        assert_eq!((model.width, model.height), (width, height), "row {row}");
        decoded(&model);
    }
}

#[test]
fn what_moves_is_refused() {
    let moving =
        with_chunk(&png(&marked(20, 20)).unwrap(), &chunk(*b"acTL", &[0, 0, 0, 1, 0, 0, 0, 0]));
    let header = hex("52494646 1e000000 57454250 56503858 0a000000 02000000 010000 010000");
    for bytes in [moving, header] {
        assert_eq!(identify(&bytes), Err(ImageError::Animated));
        assert_eq!(import(&bytes), Err(ImageError::Animated));
    }
}

#[test]
fn damage_is_an_error() {
    let mut empty = png(&marked(2, 2)).unwrap();
    empty.splice(8..33, chunk(*b"IHDR", &hex("00000000 00000002 08 02 00 00 00")));
    let mut flat = flat_jpeg("ffc0", 1, "003f00");
    let frame = flat.windows(2).position(|marker| marker == [0xff, 0xc0]).unwrap();
    flat[frame + 5..frame + 9].fill(0);
    let whole = [png(&noise(9, 9).into()).unwrap(), webp(&noise(9, 9).into())];
    let mut table = vec![
        b"\x89PNG\r\n\x1a\nand then some".to_vec(),
        b"\xff\xd8\xff and then some".to_vec(),
        b"RIFF\x20\0\0\0WEBPand then some".to_vec(),
        jpeg(&marked(20, 20), 80).unwrap()[..100].to_vec(),
        empty,
        flat,
    ];
    table.extend(whole.iter().map(|bytes| bytes[..bytes.len() / 2].to_vec()));
    for (row, bytes) in table.into_iter().enumerate() {
        let error = import(&bytes).expect_err("the image is damaged");
        assert!(matches!(error, ImageError::Undecodable(_)), "row {row}: {error}");
    }
}

#[test]
fn a_bomb_is_not_decoded() {
    let header = |width: u32, height: u32, color: u8| {
        let sides = [width.to_be_bytes(), height.to_be_bytes()].concat();
        let mut bytes = hex("89504e470d0a1a0a");
        bytes.extend(chunk(*b"IHDR", &[&sides[..], &[8, color, 0, 0, 0]].concat()));
        bytes.extend(chunk(*b"IDAT", &hex("7801 01 0000 ffff 00000001")));
        bytes.extend(chunk(*b"IEND", &[]));
        bytes
    };
    assert_eq!(import(&header(20_001, 1, 2)), Err(ImageError::TooLarge));
    assert_eq!(identify(&header(1, 20_001, 2)), Err(ImageError::TooLarge));
    assert_eq!(import(&header(20_000, 20_000, 2)), Err(ImageError::TooLarge));
    assert!(identify(&header(20_000, 20_000, 2)).is_ok(), "the header alone costs nothing");
}

#[test]
fn a_long_side_is_scaled() {
    let table = [
        ((2000, 2), None),
        ((2001, 20), Some((2000, 20))),
        ((20, 2001), Some((20, 2000))),
        ((4000, 1), Some((2000, 1))),
        ((3000, 30), Some((2000, 20))),
    ];
    for ((width, height), expected) in table {
        let image = marked(width, height);
        for bytes in [png(&image).unwrap(), jpeg(&image, 90).unwrap(), webp(&image)] {
            let imported = import(&bytes).unwrap();
            assert_eq!((imported.original.width, imported.original.height), (width, height));
            let sides = imported.model.as_ref().map(|model| (model.width, model.height));
            assert_eq!(sides, expected, "{width} × {height}");
            let Some(model) = imported.model else { continue };
            let kept = if imported.original.kind == Kind::Png { Kind::Png } else { Kind::Jpeg };
            assert_eq!(model.kind, kept, "without alpha, only PNG stays lossless");
            decoded(&model);
        }
    }
}

#[test]
fn a_large_file_is_encoded_anew() {
    for mut bytes in [png(&marked(40, 30)).unwrap(), jpeg(&marked(40, 30), 90).unwrap()] {
        bytes.resize(MAX_BYTES, 0);
        assert_eq!(import(&bytes).unwrap().model, None);
        bytes.push(0);
        let model = import(&bytes).unwrap().model.expect("the file is one byte too large");
        assert_eq!((model.width, model.height), (40, 30));
        assert!(model.bytes.len() < 10_000);
        assert_eq!(red_corner(&decoded(&model)), (false, false));
    }
}

#[test]
fn an_orientation_is_applied() {
    // For each value: where the stored upper left corner is shown, and whether the sides swap.
    let table = [
        (2, (true, false), false),
        (3, (true, true), false),
        (4, (false, true), false),
        (5, (false, false), true),
        (6, (true, false), true),
        (7, (true, true), true),
        (8, (false, true), true),
    ];
    let image = marked(64, 48);
    for (value, corner, swapped) in table {
        let late = {
            let bytes = png(&image).unwrap();
            let end = bytes.len() - 12;
            [&bytes[..end], &chunk(*b"eXIf", &tiff(value)), &bytes[end..]].concat()
        };
        let files = [
            oriented_jpeg(&image, value),
            with_chunk(&png(&image).unwrap(), &chunk(*b"eXIf", &tiff(value))),
            late,
            extended_webp(&image, 8, &tiff(value)),
            extended_webp(&image, 8, &[b"Exif\0\0", &tiff(value)[..]].concat()),
        ];
        for (row, bytes) in files.iter().enumerate() {
            let imported = import(bytes).unwrap();
            assert_eq!((imported.original.width, imported.original.height), (64, 48));
            let model = imported.model.expect("the pixels are to be turned");
            let sides = if swapped { (48, 64) } else { (64, 48) };
            assert_eq!((model.width, model.height), sides, "{value} in file {row}");
            assert_eq!(red_corner(&decoded(&model)), corner, "{value} in file {row}");
        }
    }
    for value in [0, 1, 9] {
        assert_eq!(import(&oriented_jpeg(&image, value)).unwrap().model, None, "{value}");
    }
    let tall = import(&oriented_jpeg(&marked(2500, 50), 6)).unwrap().model.unwrap();
    assert_eq!((tall.width, tall.height), (40, 2000), "scaled, then turned");
}

#[test]
fn alpha_stays_png() {
    let through = RgbaImage::from_pixel(2100, 21, Rgba([9, 9, 9, 128])).into();
    let solid = RgbaImage::from_pixel(2100, 21, Rgba([9, 9, 9, 255])).into();
    let gray = ImageBuffer::from_pixel(2100, 21, LumaA([9_u8, 128])).into();
    let deep = ImageBuffer::from_pixel(2100, 21, Rgba([9_u16, 9, 9, 30_000])).into();
    let table = [
        (webp(&through), Kind::Png, true),
        (png(&through).unwrap(), Kind::Png, true),
        (png(&gray).unwrap(), Kind::Png, true),
        (png(&deep).unwrap(), Kind::Png, true),
        ([see_through_webp(), vec![0; MAX_BYTES]].concat(), Kind::Png, true),
        ([lossy_webp(), vec![0; MAX_BYTES]].concat(), Kind::Jpeg, false),
        (webp(&solid), Kind::Jpeg, false),
        (png(&solid).unwrap(), Kind::Png, false),
        ([palette(), vec![0; MAX_BYTES]].concat(), Kind::Png, true),
    ];
    for (row, (bytes, kind, alpha)) in table.into_iter().enumerate() {
        let model = import(&bytes).unwrap().model.expect("the image is too large");
        let image = load_from_memory(&model.bytes).unwrap();
        assert_eq!((model.kind, image.has_alpha()), (kind, alpha), "row {row}");
        assert!(!matches!(image, DynamicImage::ImageRgba16(_)), "eight bits will do");
    }
}

#[test]
fn the_first_encoding_that_fits_wins() {
    let image: DynamicImage = noise(128, 128).into();
    let half = image.resize(64, 64, FilterType::Lanczos3);
    let quarter = half.resize(32, 32, FilterType::Lanczos3);
    let mut tries = Vec::new();
    for image in [&image, &half, &quarter] {
        tries.push((Kind::Png, image.width(), png(image).unwrap()));
        tries.extend(
            QUALITIES.map(|quality| (Kind::Jpeg, image.width(), jpeg(image, quality).unwrap())),
        );
    }
    for (_, _, bytes) in &tries {
        let limit = bytes.len();
        let (kind, width, bytes) = tries.iter().find(|(_, _, bytes)| bytes.len() <= limit).unwrap();
        let fitted = fit(image.clone(), Kind::Png, limit).unwrap();
        assert_eq!((fitted.kind, fitted.width, &fitted.bytes), (*kind, *width, bytes), "{limit}");
    }
    let least = tries.iter().map(|(_, _, bytes)| bytes.len()).min().unwrap();
    assert_eq!(fit(image.clone(), Kind::Png, least - 1), Err(ImageError::Exhausted));
    let through = image.to_rgba8();
    let through = RgbaImage::from_fn(128, 128, |x, y| {
        let [red, green, blue, _] = through.get_pixel(x, y).0;
        Rgba([red, green, blue, 127])
    });
    let fitted = fit(through.clone().into(), Kind::Webp, 30_000).unwrap();
    assert_eq!((fitted.kind, fitted.width), (Kind::Png, 64));
    assert_eq!(fit(through.into(), Kind::Webp, 1000), Err(ImageError::Exhausted));
}

#[test]
fn a_noisy_photo_becomes_a_jpeg() {
    let bytes = png(&noise(1200, 1200).into()).unwrap();
    assert!(bytes.len() > MAX_BYTES);
    let model = import(&bytes).unwrap().model.expect("the file is too large");
    assert_eq!((model.kind, model.width, model.height), (Kind::Jpeg, 1200, 1200));
    assert!(model.bytes.len() <= MAX_BYTES);
}

fn samples() -> Vec<Vec<u8>> {
    let image = noise(11, 9).into();
    vec![
        png(&image).unwrap(),
        palette(),
        with_chunk(&png(&image).unwrap(), &chunk(*b"eXIf", &tiff(6))),
        oriented_jpeg(&image, 5),
        flat_jpeg("ffc0", 4, "003f00"),
        flat_jpeg("ffc2", 1, "000000"),
        webp(&image),
        lossy_webp(),
        see_through_webp(),
        extended_webp(&image, 8, &tiff(8)),
    ]
}

proptest! {
    #[test]
    fn damaged_bytes_never_panic(
        sample in prop::sample::select(samples()),
        length: prop::sample::Index,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
    ) {
        let mut bytes = sample;
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        drop(import(&bytes));
        bytes.truncate(length.index(bytes.len()));
        drop(import(&bytes));
    }

    #[test]
    fn random_bytes_never_panic(
        head in prop::sample::select(vec![
            b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec(),
            b"\xff\xd8\xff".to_vec(),
            b"RIFF\xff\0\0\0WEBPVP8 ".to_vec(),
            b"RIFF\xff\0\0\0WEBPVP8L".to_vec(),
            b"RIFF\xff\0\0\0WEBPVP8X".to_vec(),
        ]),
        tail: Vec<u8>,
    ) {
        let bytes = [head, tail].concat();
        drop(identify(&bytes));
        drop(import(&bytes));
    }
}
