//! The elements of HTML and their parsing rules.

macro_rules! tags {
    ($($variant:ident $name:literal)*) => {
        /// An element of HTML.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Tag { $($variant,)* Other }

        impl Tag {
            /// By its name in lower case.
            pub(super) fn of(name: &str) -> Tag {
                match name {
                    $($name => Tag::$variant,)*
                    _ => Tag::Other,
                }
            }

            pub(super) fn name(self) -> &'static str {
                match self {
                    $(Tag::$variant => $name,)*
                    Tag::Other => "",
                }
            }
        }
    };
}

tags! {
    A "a" Abbr "abbr" Acronym "acronym" Address "address" Applet "applet" Area "area"
    Article "article" Aside "aside" Audio "audio" B "b" Base "base" Basefont "basefont" Bdi "bdi"
    Bdo "bdo" Bgsound "bgsound" Big "big" Blockquote "blockquote" Body "body" Br "br"
    Button "button" Canvas "canvas" Caption "caption" Center "center" Cite "cite" Code "code"
    Col "col" Colgroup "colgroup" Datalist "datalist" Dd "dd" Del "del" Details "details"
    Dfn "dfn" Dialog "dialog" Dir "dir" Div "div" Dl "dl" Dt "dt" Em "em" Embed "embed"
    Fieldset "fieldset" Figcaption "figcaption" Figure "figure" Font "font" Footer "footer"
    Form "form" Frame "frame" Frameset "frameset" H1 "h1" H2 "h2" H3 "h3" H4 "h4" H5 "h5" H6 "h6"
    Head "head" Header "header" Hgroup "hgroup" Hr "hr" Html "html" I "i" Iframe "iframe"
    Img "img" Input "input" Ins "ins" Kbd "kbd" Keygen "keygen" Label "label" Legend "legend"
    Li "li" Link "link" Listing "listing" Main "main" Map "map" Mark "mark" Marquee "marquee"
    Math "math" Menu "menu" Meta "meta" Meter "meter" Nav "nav" Nobr "nobr" Noembed "noembed"
    Noframes "noframes" Noscript "noscript" Object "object" Ol "ol" Optgroup "optgroup"
    Option "option" Output "output" P "p" Param "param" Picture "picture" Plaintext "plaintext"
    Pre "pre" Progress "progress" Q "q" Rb "rb" Rp "rp" Rt "rt" Rtc "rtc" Ruby "ruby" S "s"
    Samp "samp" Script "script" Search "search" Section "section" Select "select" Slot "slot"
    Small "small" Source "source" Span "span" Strike "strike" Strong "strong" Style "style"
    Sub "sub" Summary "summary" Sup "sup" Svg "svg" Table "table" Tbody "tbody" Td "td"
    Template "template" Textarea "textarea" Tfoot "tfoot" Th "th" Thead "thead" Title "title"
    Tr "tr" Track "track" Tt "tt" U "u" Ul "ul" Var "var" Video "video" Wbr "wbr" Xmp "xmp"
}

use Tag::*;

impl Tag {
    pub(super) const COUNT: usize = Other as usize + 1;

    /// It has no content and no end tag.
    pub(super) fn is_void(self) -> bool {
        matches!(
            self,
            Area | Base | Basefont | Bgsound | Br | Col | Embed | Frame | Hr | Img | Input | Keygen
        ) || matches!(self, Link | Meta | Param | Source | Track | Wbr)
    }

    /// Its content is text, whatever it looks like.
    pub(super) fn is_raw(self) -> bool {
        matches!(
            self,
            Iframe | Noembed | Noframes | Plaintext | Script | Style | Textarea | Title | Xmp
        )
    }

    /// It belongs in the head, unless a body has started.
    pub(super) fn is_of_head(self) -> bool {
        matches!(self, Base | Basefont | Bgsound | Link | Meta | Noframes | Noscript)
            || matches!(self, Script | Style | Template | Title)
    }

    /// It ends a paragraph.
    pub(super) fn ends_paragraph(self) -> bool {
        self.is_block()
            || self.is_heading()
            || matches!(self, Form | Hr | Li | Dd | Dt | P | Plaintext | Table | Xmp)
    }

    /// Its end closes everything inside it.
    pub(super) fn is_block(self) -> bool {
        matches!(
            self,
            Address | Article | Aside | Blockquote | Center | Details | Dialog | Dir | Div | Dl
        ) || matches!(self, Fieldset | Figcaption | Figure | Footer | Header | Hgroup | Listing)
            || matches!(self, Main | Menu | Nav | Ol | Pre | Search | Section | Summary | Ul)
    }

    pub(super) fn is_heading(self) -> bool {
        matches!(self, H1 | H2 | H3 | H4 | H5 | H6)
    }

    /// Its end closes only itself: `<b><p></b>` continues in the paragraph.
    pub(super) fn is_formatting(self) -> bool {
        matches!(self, A | B | Big | Code | Em | Font | I | Nobr)
            || matches!(self, S | Small | Strike | Strong | Tt | U)
    }

    /// End tags of outer elements do not close it.
    pub(super) fn bounds_scope(self) -> bool {
        matches!(self, Applet | Caption | Html | Marquee | Object | Table | Td | Template | Th)
    }

    /// No end tag of an inline element closes it.
    pub(super) fn is_special(self) -> bool {
        self.is_block()
            || self.is_heading()
            || self.bounds_scope()
            || matches!(self, Body | Button | Colgroup | Dd | Dt | Form | Frameset | Head | Li)
            || matches!(self, P | Select | Tbody | Tfoot | Thead | Tr)
    }

    /// SVG or MathML, with rules of its own.
    pub(super) fn is_foreign(self) -> bool {
        matches!(self, Math | Svg)
    }

    /// `tbody` and similar.
    pub(super) fn is_table_part(self) -> bool {
        matches!(self, Tbody | Tfoot | Thead)
    }
}
