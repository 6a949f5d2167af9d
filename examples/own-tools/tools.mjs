// Two functions that agents of a workspace call. BUILDSCALE_URL, BUILDSCALE_TOKEN and BUILDSCALE_WORKSPACE say where.
import {Client, serveTools} from 'buildscale';

const stock = {bolt: 7, nut: 0};
const text = {type: 'string'};
const tools = {
  stock: {
    description: 'Tells how many of a part are there.', effects: 'read',
    parameters: {type: 'object', properties: {part: text}, required: ['part']},
    run: ({part}) => ({part, count: stock[part] ?? 0}),
  },
  order: {
    description: 'Orders a part.', timeoutS: 600,
    parameters: {type: 'object', properties: {part: text, count: {type: 'integer'}}, required: ['part', 'count']},
    run: ({part, count}) => `${count} of ${part} are ordered: ${(stock[part] = (stock[part] ?? 0) + count)} then`,
  },
};
const {BUILDSCALE_URL: url = 'http://127.0.0.1:8686', BUILDSCALE_TOKEN: token, BUILDSCALE_WORKSPACE: workspace} = process.env;
await serveTools(new Client({url, token}), workspace, tools);
