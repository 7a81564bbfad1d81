// Channels with the serializer of Phoenix's client: they reply to each push, and repeat messages.
// The port is printed first, then each event.
const { Serializer } = require('phoenix');
const { WebSocketServer } = require('ws');

const server = new WebSocketServer({ port: 0, host: '127.0.0.1', path: '/socket/websocket' });
server.on('connection', (socket) => {
  const send = (message) => Serializer.encode(message, (text) => socket.send(text));
  socket.on('message', (data) => Serializer.decode(data.toString(), (message) => {
    const { topic, event, payload } = message;
    console.log(event);
    send({ ...message, event: 'phx_reply', payload: { status: 'ok', response: {} } });
    if (event === 'new_msg') send({ join_ref: null, ref: null, topic, event, payload });
  }));
});
server.on('listening', () => console.log(`listening ${server.address().port}`));
