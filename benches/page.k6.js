// `cargo xtask bench http`: one page, again and again.
import http from 'k6/http';

export default function () {
  http.get(__ENV.URL);
}

export function handleSummary(data) {
  return { stdout: JSON.stringify(data) };
}
