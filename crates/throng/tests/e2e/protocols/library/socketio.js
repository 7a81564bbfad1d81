// A Socket.IO server that prints the events it receives. Its port is printed first.
const { createServer } = require('http');
const { Server } = require('socket.io');

const http = createServer();
const io = new Server(http, { pingInterval: 50, pingTimeout: 60000 });
io.on('connection', (socket) => {
  console.log(socket.handshake.auth.token ? 'joined' : 'without token');
  socket.conn.on('packet', ({ type }) => { if (type === 'pong') console.log('pong'); });
  socket.on('add', (a, b, answer) => { console.log('add'); answer(a + b); });
  socket.on('say', (text) => { console.log('say'); socket.emit('said', text); });
});
http.listen(0, '127.0.0.1', () => console.log(`listening ${http.address().port}`));
