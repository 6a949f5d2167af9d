// A receiver of webhooks that checks each signature as Standard Webhooks has it, and answers with `status`.
import {createHmac, timingSafeEqual} from 'node:crypto';
import {createServer} from 'node:http';

export async function startReceiver() {
  const receiver = {url: '', secret: '', status: 204, taken: [], forged: 0};
  const isSigned = (headers, body) => {
    const key = Buffer.from(receiver.secret.replace('whsec_', ''), 'base64');
    const expected = createHmac('sha256', key).update(`${headers['webhook-id']}.${headers['webhook-timestamp']}.`).update(body).digest();
    return String(headers['webhook-signature']).split(' ').some(one => {
      const given = Buffer.from(one.replace('v1,', ''), 'base64');
      return given.length === expected.length && timingSafeEqual(given, expected);
    });
  };
  const server = createServer(async (request, response) => {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    const body = Buffer.concat(pieces);
    if (isSigned(request.headers, body)) receiver.taken.push(JSON.parse(body).type);
    else receiver.forged++;
    response.writeHead(receiver.status).end();
  });
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  receiver.url = `http://127.0.0.1:${server.address().port}/hook`;
  receiver.stop = () => new Promise(resolve => { server.close(resolve); server.closeAllConnections(); });
  return receiver;
}
