// `cargo xtask bench http`: each user sends a message, waits for its echo and sends again.
import ws from 'k6/ws';

export default function () {
  ws.connect(__ENV.URL, {}, (socket) => {
    socket.on('open', () => socket.send('hello'));
    socket.on('message', () => socket.send('hello'));
    socket.setTimeout(() => socket.close(), __ENV.SECONDS * 1000);
  });
}

export function handleSummary(data) {
  return { stdout: JSON.stringify(data) };
}
