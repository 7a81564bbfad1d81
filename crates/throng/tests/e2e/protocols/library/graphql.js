// A graphql-ws server that prints what it does, and writes the keys of messages in another order.
// Its port is printed first.
const { buildSchema } = require('graphql');
const { useServer } = require('graphql-ws/use/ws');
const { WebSocketServer } = require('ws');

const say = (text) => () => { console.log(text); };
async function* count() {
  for (const count of [1, 2, 3]) yield { count };
}
const server = new WebSocketServer({ port: 0, host: '127.0.0.1', path: '/graphql' });
const reversed = (key, value) => (key === '' ? Object.fromEntries(Object.entries(value).reverse()) : value);
useServer({
  jsonMessageReplacer: reversed,
  schema: buildSchema('type Query { hello: String } type Subscription { count: Int }'),
  roots: { query: { hello: () => 'world' }, subscription: { count } },
  onConnect: say('connected'),
  onOperation: say('operation'),
  onNext: say('next'),
  onError: say('error'),
}, server);
server.on('listening', () => console.log(`listening ${server.address().port}`));
