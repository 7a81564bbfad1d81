// One of the Socket.IO servers: `node room.js NAME PORT BOOKS`. It prints `listening PORT`, and
// writes a line to BOOKS for each thing that it saw, at once, so that the books survive the process.
const { appendFileSync } = require('fs');
const { createServer } = require('http');
const { Server } = require('socket.io');
const [name, port, books] = process.argv.slice(2);
const book = (line) => appendFileSync(books, line + '\n');
const server = createServer();
const io = new Server(server, { pingInterval: 1000, pingTimeout: 10_000 });
io.engine.on('connection', (socket) => {
  book('opened');
  socket.on('upgrade', () => book('upgraded'));
});
io.engine.on('connection_error', (error) => book('refused ' + error.message));
io.on('connection', (socket) => {
  book('namespace');
  socket.on('join', (room, done) => {
    socket.join(room);
    book('joined');
    done(room + ' of ' + name);
  });
  socket.on('say', (message, done) => {
    const room = [...socket.rooms].find((it) => it !== socket.id);
    book('say ' + message.id);
    for (const _ of io.sockets.adapter.rooms.get(room) ?? []) book('said');
    io.to(room).emit('said', message);
    done('ok');
  });
  socket.on('disconnect', (reason) => book('closed ' + reason));
});
process.on('SIGUSR2', () => {
  // Every other connection ends without a word.
  let n = 0;
  for (const socket of io.sockets.sockets.values()) {
    if (n++ % 2 === 0) { book('cut'); socket.conn.transport.socket?._socket?.resetAndDestroy(); }
  }
});
server.listen(Number(port), '127.0.0.1', () => console.log('listening ' + server.address().port));
