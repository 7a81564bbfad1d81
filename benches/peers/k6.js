// All users exist from the start; each waits for its turn to connect.
import ws from 'k6/ws';
import { sleep } from 'k6';
import exec from 'k6/execution';

export const options = { scenarios: { im: {
  executor: 'per-vu-iterations', vus: @USERS@, iterations: 1, maxDuration: '@LIMIT@s' } } };

export default function () {
  const id = exec.vu.idInTest;
  sleep((id - 1) / @PACE@);
  ws.connect('@URL@', {}, (socket) => {
    const say = (seq, cmd, data) => socket.send(JSON.stringify({ seq: `${id}-${seq}`, cmd, data }));
    socket.on('open', () => say('1', 'login', { userId: `u${id}` }));
    socket.on('message', (text) => {
      const heard = JSON.parse(text);
      if (heard.cmd !== 'login') return;
      if (heard.response.code !== 200) return socket.close();
      socket.setInterval(() => say('hb', 'heartbeat', {}), @BEAT@ * 1000);
    });
    socket.setTimeout(() => socket.close(),
      Math.max(1, @STAY@ * 1000 + 2000 - exec.instance.currentTestRunDuration));
  });
}

export function handleSummary() { return {}; }
