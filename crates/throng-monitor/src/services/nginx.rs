//! nginx: the page of `stub_status`, with the names of nginx-prometheus-exporter.
//! <https://nginx.org/en/docs/http/ngx_http_stub_status_module.html>

use throng_base::Said;

use super::figure::Figure;

/// The word before the figure, its distance in words, the name of its series, and whether it is a
/// counter.
const FIELDS: [(&str, usize, &str, bool); 7] = [
    ("connections:", 1, "nginx_connections_active", false),
    ("requests", 1, "nginx_connections_accepted", true),
    ("requests", 2, "nginx_connections_handled", true),
    ("requests", 3, "nginx_http_requests_total", true),
    ("Reading:", 1, "nginx_connections_reading", false),
    ("Writing:", 1, "nginx_connections_writing", false),
    ("Waiting:", 1, "nginx_connections_waiting", false),
];

pub(super) fn figures(text: &str) -> Result<Vec<Figure>, Said> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let figure = |(word, behind, name, is_counter): (&str, usize, &str, bool)| {
        let at = words.iter().position(|it| *it == word)?;
        let value: u64 = words.get(at + behind)?.parse().ok()?;
        Some(Figure::new(name, is_counter, value as f64))
    };
    let all: Option<Vec<Figure>> = FIELDS.into_iter().map(figure).collect();
    all.ok_or_else(|| say!("its response does not have the format of `stub_status`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "Active connections: 291 \nserver accepts handled requests\n \
                        16630948 16630945 31070465000 \nReading: 6 Writing: 179 Waiting: 106 \n";

    #[test]
    fn the_page_of_its_own_documentation() {
        let told = figures(PAGE).expect("read");
        let values: Vec<f64> = told.iter().map(|it| it.value).collect();
        let wanted = [291.0, 16_630_948.0, 16_630_945.0, 31_070_465_000.0, 6.0, 179.0, 106.0];
        assert_eq!(values, wanted);
        assert_eq!(told.iter().filter(|it| it.is_counter).count(), 3);
    }

    #[test]
    fn fuzz_a_page_is_whole_or_none() {
        for bad in ["", "<html><h1>Welcome to nginx!</h1></html>", "Active connections: 1 \n"] {
            assert!(figures(bad).is_err(), "{bad}");
        }
        throng_fuzz::mutations(&[PAGE.as_bytes()], |bytes, _| {
            let told = figures(&String::from_utf8_lossy(bytes));
            assert!(told.is_err() || told.is_ok_and(|told| told.len() == FIELDS.len()));
        });
    }
}
