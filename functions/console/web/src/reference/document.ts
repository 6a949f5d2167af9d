/** The OpenAPI document of the hub, as the reference shows it: pure, without a hub and without a browser. */

export interface Schema {
  $ref?: string;
  type?: string | string[];
  format?: string;
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  additionalProperties?: boolean | Schema;
  enum?: unknown[];
  const?: unknown;
  oneOf?: Schema[];
  anyOf?: Schema[];
  allOf?: Schema[];
  default?: unknown;
  example?: unknown;
}

export interface Parameter {
  name: string;
  in: string;
  description?: string;
  required?: boolean;
  schema?: Schema;
}

type Content = Record<string, {schema?: Schema}>;

interface Response {
  $ref?: string;
  description?: string;
  content?: Content;
}

interface Described {
  operationId?: string;
  summary?: string;
  description?: string;
  tags?: string[];
  parameters?: Parameter[];
  requestBody?: {description?: string; content?: Content; required?: boolean};
  responses?: Record<string, Response>;
}

export interface OpenApi {
  info: {title: string; version: string; description?: string};
  tags?: {name: string; description?: string}[];
  paths: Record<string, Record<string, Described>>;
  components?: {schemas?: Record<string, Schema>; responses?: Record<string, Response>};
}

/** A method at a path. */
export interface Operation {
  id: string;
  method: string;
  path: string;
  /** Its summary and its description. */
  text: string;
  described: Described;
}

export interface Group {
  tag: string;
  text: string;
  operations: Operation[];
}

export interface SchemaField {
  name: string;
  schema: Schema;
  isRequired: boolean;
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete', 'head', 'options'];

/** The operations whose method, path, name or text have all words, by tag and in the order of the document. */
export function groups(api: OpenApi, words = ''): Group[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(word => word !== '');
  const found = new Map<string, Group>((api.tags ?? []).map(({name, description}) => [name, {tag: name, text: description ?? '', operations: []}]));
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, described] of Object.entries(methods)) {
      if (!METHODS.includes(method)) continue;
      const id = described.operationId ?? `${method} ${path}`;
      const text = [described.summary, described.description].filter(Boolean).join('\n\n');
      const all = `${method} ${path} ${id} ${text}`.toLowerCase();
      if (!wanted.every(word => all.includes(word))) continue;
      const tag = described.tags?.[0] ?? 'other';
      const group = found.get(tag) ?? {tag, text: '', operations: []};
      found.set(tag, group);
      group.operations.push({id, method, path, text, described});
    }
  }
  return [...found.values()].filter(group => group.operations.length > 0);
}

const nameOf = (ref: string): string => ref.split('/').at(-1) ?? ref;

/** The schema itself, where this one only names it. */
export function resolved(api: OpenApi, schema: Schema): Schema {
  let known: Schema | undefined = schema;
  // A document that names in a circle has no schema there.
  for (let steps = 0; known?.$ref !== undefined && steps < 20; steps++) known = api.components?.schemas?.[nameOf(known.$ref)];
  return known ?? {};
}

/** The type in one line, such as `string (uuid) | null` or `File[]`. */
export function typeOf(schema: Schema | undefined): string {
  if (schema === undefined) return 'any';
  if (schema.$ref !== undefined) return nameOf(schema.$ref);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map(value => JSON.stringify(value)).join(' | ');
  const parts = schema.oneOf ?? schema.anyOf;
  if (parts) return nullLast(parts.map(typeOf)).join(' | ');
  if (schema.allOf) return schema.allOf.map(typeOf).join(' & ');
  return nullLast([schema.type ?? 'any'].flat().map(type => {
    if (type === 'array') {
      const items = typeOf(schema.items);
      return items.includes(' ') ? `(${items})[]` : `${items}[]`;
    }
    if (type === 'object' && typeof schema.additionalProperties === 'object' && !schema.properties) return `map of ${typeOf(schema.additionalProperties)}`;
    return schema.format !== undefined && type !== 'null' ? `${type} (${schema.format})` : type;
  })).join(' | ');
}

const nullLast = (types: string[]): string[] => [...types.filter(type => type !== 'null'), ...types.filter(type => type === 'null')];

/** The schemas with a name that the type of this one has. */
export function namedIn(schema: Schema | undefined): string[] {
  if (schema === undefined) return [];
  if (schema.$ref !== undefined) return [nameOf(schema.$ref)];
  const more = typeof schema.additionalProperties === 'object' ? [schema.additionalProperties] : [];
  const parts = [...(schema.oneOf ?? []), ...(schema.anyOf ?? []), ...(schema.allOf ?? []), ...(schema.items ? [schema.items] : []), ...more];
  return [...new Set(parts.flatMap(namedIn))];
}

/** The fields of an object: its own, and those of all that it is made of. */
export function fieldsOf(api: OpenApi, schema: Schema, depth = 0): SchemaField[] {
  const known = resolved(api, schema);
  const inherited = depth < 5 ? (known.allOf ?? []).flatMap(part => fieldsOf(api, part, depth + 1)) : [];
  const own = Object.entries(known.properties ?? {}).map(([name, schema]) => ({name, schema, isRequired: known.required?.includes(name) ?? false}));
  return [...inherited, ...own];
}

/** The kinds that a union has. */
export const variantsOf = (api: OpenApi, schema: Schema): Schema[] => {
  const {oneOf, anyOf} = resolved(api, schema);
  return oneOf ?? anyOf ?? [];
};

/** The answers other than refusals. */
export function answersOf(operation: Operation): [status: string, answer: Response][] {
  return Object.entries(operation.described.responses ?? {}).filter(([status]) => /^[123]/.test(status));
}

/** The refusals of an operation: status and codes, as the names of the shared answers have them. */
export function refusalsOf(operation: Operation): {status: string; codes: string[]}[] {
  const refused = Object.entries(operation.described.responses ?? {}).filter(([status]) => /^[45]/.test(status));
  return refused.map(([status, answer]) => ({status, codes: nameOf(answer.$ref ?? '').split('-').filter(part => /^[A-Z_]{2,}$/.test(part))}));
}

/** A value that fits a schema, with the fields that must be there. */
export function exampleOf(api: OpenApi, schema: Schema | undefined, depth = 0): unknown {
  const known = schema === undefined ? {} : resolved(api, schema);
  const given = [known.example, known.const, known.enum?.[0], known.default].find(value => value !== undefined && value !== null);
  if (given !== undefined) return given;
  const type = [known.type ?? []].flat().find(type => type !== 'null');
  if (type === 'array') return [];
  const union = (known.oneOf ?? known.anyOf)?.find(part => part.type !== 'null');
  if (union && depth < 4) return exampleOf(api, union, depth + 1);
  if (type === 'object' || known.allOf) {
    const must = depth < 4 ? fieldsOf(api, known).filter(field => field.isRequired) : [];
    return Object.fromEntries(must.map(({name, schema}) => [name, exampleOf(api, schema, depth + 1)]));
  }
  if (type === 'string') return known.format === 'date-time' ? '2026-01-31T12:00:00Z' : known.format === 'uuid' ? '00000000-0000-0000-0000-000000000000' : '…';
  return type === 'boolean' ? false : type === 'integer' || type === 'number' ? 0 : {};
}

/** Variables that a shell or a session sets itself. */
const TAKEN = /^(?:_|CDPATH|COLUMNS|DISPLAY|EDITOR|EUID|HOME|HOSTNAME|IFS|LANG|LINES|LOGNAME|MAIL|OLDPWD|PAGER|PATH|PPID|PS\d|PWD|RANDOM|SECONDS|SHELL|TERM|TMPDIR|TZ|UID|USER|VISUAL)$/;

/** The variable of a shell for a parameter: `$CHAT_ID` for `chat_id`, and `$PATH_VALUE` for `path`, since `$PATH` has another meaning. */
function variable(name: string): string {
  const upper = name.replace(/([a-z])([A-Z])/g, '$1_$2').replace(/\W/g, '_').toUpperCase();
  return TAKEN.test(upper) ? `${upper}_VALUE` : upper;
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** The request as a command of a shell. Ids and the token come from variables of the shell. */
export function curl(api: OpenApi, operation: Operation, origin: string): string {
  const {method, path, described} = operation;
  const must = (described.parameters ?? []).filter(parameter => parameter.required);
  const query = must.filter(parameter => parameter.in === 'query').map(({name}) => `${encodeURIComponent(name)}=$${variable(name)}`);
  const place = path.replace(/\{\*?([^}]+)\}/g, (_, name: string) => `$${variable(name)}`);
  const streams = answersOf(operation).some(([, answer]) => answer.content?.['text/event-stream'] !== undefined);
  const [kind, content] = Object.entries(described.requestBody?.content ?? {})[0] ?? [];
  const begin = ['curl', ...(streams ? ['-N'] : []), ...(method === 'get' ? [] : [`-X ${method.toUpperCase()}`]), `"${origin}${place}${query.length > 0 ? `?${query.join('&')}` : ''}"`];
  const rest = ['-H "authorization: Bearer $BUILDSCALE_TOKEN"', ...must.filter(parameter => parameter.in === 'header').map(({name}) => `-H "${name.toLowerCase()}: $${variable(name)}"`)];
  if (kind !== undefined) {
    rest.push(`-H 'content-type: ${kind}'`);
    rest.push(/\bjson$/.test(kind) ? `-d ${quoted(JSON.stringify(exampleOf(api, content?.schema)))}` : '--data-binary @FILE');
  }
  return [begin.join(' '), ...rest].join(' \\\n  ');
}
