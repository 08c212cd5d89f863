//! Images: what they are by their content, and the form of them that a model takes.

use std::io::Cursor;

use ::image::codecs::jpeg::{JpegDecoder, JpegEncoder};
use ::image::codecs::png::{CompressionType, FilterType as PngFilter, PngDecoder, PngEncoder};
use ::image::codecs::webp::WebPDecoder;
use ::image::error::LimitErrorKind;
use ::image::imageops::FilterType;
use ::image::metadata::Orientation;
use ::image::{DynamicImage, ImageDecoder, Limits};

/// The longest side of an image for a model, in pixels.
pub const MAX_SIDE: u32 = 2000;

/// The most bytes of an image for a model.
pub const MAX_BYTES: usize = 3_932_160;

/// The longest side that is decoded at all.
const DECODED_SIDE: u32 = 20_000;

/// The most bytes of pixels that are decoded at all: a small file can stand for gigabytes.
const DECODED_BYTES: u64 = 256 * 1024 * 1024;

/// What the sides are divided by, from one try to the next.
const DIVISORS: [u32; 3] = [1, 2, 4];

/// The JPEG qualities of one try, the best first.
const QUALITIES: [u8; 4] = [85, 70, 50, 30];

/// A format of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Portable Network Graphics.
    Png,
    /// JPEG in any of its color spaces, baseline or progressive.
    Jpeg,
    /// WebP, lossy or lossless.
    Webp,
}

impl Kind {
    /// Returns the kind of a file that begins with `head`; 12 bytes are enough.
    pub fn sniff(head: &[u8]) -> Option<Self> {
        if head.starts_with(b"\x89PNG\r\n\x1a\n") {
            Some(Self::Png)
        } else if head.starts_with(&[0xff, 0xd8, 0xff]) {
            Some(Self::Jpeg)
        } else if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP") {
            Some(Self::Webp)
        } else {
            None
        }
    }

    /// Returns the MIME type, as in `image/png`.
    pub fn mime_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Webp => "image/webp",
        }
    }

    /// Returns the extension of a file name, without its dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpg",
            Self::Webp => "webp",
        }
    }
}

/// What a file says of its image; the sides are as stored, before any orientation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    /// The format.
    pub kind: Kind,
    /// The width in pixels.
    pub width: u32,
    /// The height in pixels.
    pub height: u32,
}

/// An image that was encoded anew for a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// The format, which need not be that of the original.
    pub kind: Kind,
    /// The width in pixels.
    pub width: u32,
    /// The height in pixels.
    pub height: u32,
    /// The file.
    pub bytes: Vec<u8>,
}

/// An image that was decoded as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The image as it came.
    pub original: Form,
    /// The image for a model, unless the original will do.
    pub model: Option<Encoded>,
}

/// Why there is no image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// The content is none of the known formats.
    #[error("the content is not a PNG, JPEG or WebP image")]
    Unknown,
    /// The image moves.
    #[error("animated images are not supported")]
    Animated,
    /// Decoding would take too much memory.
    #[error(
        "the image is too large to decode: at most {DECODED_SIDE} pixels a side \
         and {DECODED_BYTES} bytes of pixels"
    )]
    TooLarge,
    /// The content is damaged, or of a variety that isn't known.
    #[error("the image can't be decoded: {0}")]
    Undecodable(String),
    /// The pixels could not be written.
    #[error("the image can't be encoded: {0}")]
    Unencodable(String),
    /// No try gave a small enough file.
    #[error("after limited scaling and encoding the image is still larger than a model takes")]
    Exhausted,
}

impl From<::image::ImageError> for ImageError {
    fn from(error: ::image::ImageError) -> Self {
        match error {
            ::image::ImageError::Limits(limit)
                if matches!(
                    limit.kind(),
                    LimitErrorKind::DimensionError | LimitErrorKind::InsufficientMemory
                ) =>
            {
                Self::TooLarge
            }
            // The bytes are in memory: reading fails only at their end.
            ::image::ImageError::IoError(_) => Self::Undecodable("it is cut short".to_owned()),
            ::image::ImageError::Encoding(error) => Self::Unencodable(error.to_string()),
            error => Self::Undecodable(error.to_string()),
        }
    }
}

/// Reads the header of an image that is passed on as it is; the pixels may still be damaged.
pub fn identify(bytes: &[u8]) -> Result<Form, ImageError> {
    open(bytes).map(|(form, _)| form)
}

/// Decodes an image, and encodes it anew if a model would not take it as it is.
///
/// A new file is needed when a side or the file is too large, or when the pixels are to be turned
/// or mirrored before they are shown, which a model does not do.
pub fn import(bytes: &[u8]) -> Result<Imported, ImageError> {
    let (original, mut decoder) = open(bytes)?;
    limits().reserve(decoder.total_bytes())?;
    let orientation = orientation(original.kind, bytes, decoder.as_mut());
    let mut image = DynamicImage::from_decoder(decoder)?;
    let side = original.width.max(original.height);
    if side <= MAX_SIDE
        && bytes.len() <= MAX_BYTES
        && matches!(orientation, Orientation::NoTransforms)
    {
        return Ok(Imported { original, model: None });
    }
    if side > MAX_SIDE {
        image = image.resize(MAX_SIDE, MAX_SIDE, FilterType::Lanczos3);
    }
    // Turned after it was scaled: fewer pixels, same result.
    image.apply_orientation(orientation);
    let model = fit(plain(image), original.kind, MAX_BYTES)?;
    Ok(Imported { original, model: Some(model) })
}

fn limits() -> Limits {
    let mut limits = Limits::no_limits();
    limits.max_image_width = Some(DECODED_SIDE);
    limits.max_image_height = Some(DECODED_SIDE);
    limits.max_alloc = Some(DECODED_BYTES);
    limits
}

type Decoder<'a> = Box<dyn ImageDecoder + 'a>;

/// Reads up to the pixels.
fn open(bytes: &[u8]) -> Result<(Form, Decoder<'_>), ImageError> {
    let kind = Kind::sniff(bytes).ok_or(ImageError::Unknown)?;
    // Before the decoder looks: it may stumble over a frame and call the image damaged.
    if is_animated(kind, bytes) {
        return Err(ImageError::Animated);
    }
    let reader = Cursor::new(bytes);
    let mut decoder: Decoder<'_> = match kind {
        Kind::Png => Box::new(PngDecoder::with_limits(reader, limits())?),
        Kind::Jpeg => Box::new(JpegDecoder::new(reader)?),
        Kind::Webp => Box::new(WebPDecoder::new(reader)?),
    };
    decoder.set_limits(limits())?;
    let (width, height) = decoder.dimensions();
    if width == 0 || height == 0 {
        return Err(ImageError::Undecodable("it has no pixels".to_owned()));
    }
    Ok((Form { kind, width, height }, decoder))
}

fn is_animated(kind: Kind, bytes: &[u8]) -> bool {
    match kind {
        Kind::Png => png_chunk(bytes, *b"acTL").is_some(),
        Kind::Jpeg => false,
        Kind::Webp => {
            bytes.get(12..16) == Some(b"VP8X") && bytes.get(20).is_some_and(|flags| flags & 2 != 0)
        }
    }
}

/// Returns the content of the first chunk called `name`.
fn png_chunk(bytes: &[u8], name: [u8; 4]) -> Option<&[u8]> {
    let mut rest = bytes.get(8..)?;
    loop {
        let (length, tail) = rest.split_first_chunk::<4>()?;
        let (found, tail) = tail.split_first_chunk::<4>()?;
        let (content, tail) =
            tail.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
        if *found == name {
            return Some(content);
        }
        if found == b"IEND" {
            return None;
        }
        let (_checksum, tail) = tail.split_first_chunk::<4>()?;
        rest = tail;
    }
}

/// Returns how the pixels are to be turned; metadata that can't be read say nothing.
fn orientation(kind: Kind, bytes: &[u8], decoder: &mut dyn ImageDecoder) -> Orientation {
    let exif = match kind {
        // The decoder sees only what stands before the pixels, and some programs write it after.
        Kind::Png => png_chunk(bytes, *b"eXIf").map(<[u8]>::to_vec),
        Kind::Jpeg | Kind::Webp => decoder.exif_metadata().ok().flatten(),
    };
    exif.and_then(|exif| {
        // The prefix belongs to JPEG, but some programs write it into other formats too.
        Orientation::from_exif_chunk(exif.strip_prefix(b"Exif\0\0").unwrap_or(&exif))
    })
    .unwrap_or(Orientation::NoTransforms)
}

/// Returns the image with eight bits a sample, and with alpha only where something shows through.
fn plain(image: DynamicImage) -> DynamicImage {
    let color = image.color();
    let see_through = match &image {
        DynamicImage::ImageLumaA8(pixels) => pixels.pixels().any(|pixel| pixel[1] != u8::MAX),
        DynamicImage::ImageLumaA16(pixels) => pixels.pixels().any(|pixel| pixel[1] != u16::MAX),
        DynamicImage::ImageRgba8(pixels) => pixels.pixels().any(|pixel| pixel[3] != u8::MAX),
        DynamicImage::ImageRgba16(pixels) => pixels.pixels().any(|pixel| pixel[3] != u16::MAX),
        _ => false,
    };
    match (color.has_color(), see_through) {
        (false, false) => DynamicImage::ImageLuma8(image.into_luma8()),
        (false, true) => DynamicImage::ImageLumaA8(image.into_luma_alpha8()),
        (true, false) => DynamicImage::ImageRgb8(image.into_rgb8()),
        (true, true) => DynamicImage::ImageRgba8(image.into_rgba8()),
    }
}

/// Returns the first encoding of at most `limit` bytes.
fn fit(mut image: DynamicImage, source: Kind, limit: usize) -> Result<Encoded, ImageError> {
    let side = image.width().max(image.height());
    let has_alpha = image.has_alpha();
    for divisor in DIVISORS {
        if divisor > 1 {
            let side = (side / divisor).max(1);
            image = image.resize(side, side, FilterType::Lanczos3);
        }
        let encoded =
            |kind, bytes| Encoded { kind, width: image.width(), height: image.height(), bytes };
        if has_alpha || source == Kind::Png {
            let bytes = png(&image)?;
            if bytes.len() <= limit {
                return Ok(encoded(Kind::Png, bytes));
            }
        }
        // JPEG has no alpha, and what lies behind the image is not ours to choose.
        let qualities: &[u8] = if has_alpha { &[] } else { &QUALITIES };
        for &quality in qualities {
            let bytes = jpeg(&image, quality)?;
            if bytes.len() <= limit {
                return Ok(encoded(Kind::Jpeg, bytes));
            }
        }
    }
    Err(ImageError::Exhausted)
}

fn png(image: &DynamicImage) -> Result<Vec<u8>, ImageError> {
    let mut bytes = Vec::new();
    image.write_with_encoder(PngEncoder::new_with_quality(
        &mut bytes,
        CompressionType::Default,
        PngFilter::Adaptive,
    ))?;
    Ok(bytes)
}

fn jpeg(image: &DynamicImage, quality: u8) -> Result<Vec<u8>, ImageError> {
    let mut bytes = Vec::new();
    image.write_with_encoder(JpegEncoder::new_with_quality(&mut bytes, quality))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
