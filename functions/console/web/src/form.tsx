/** Forms from JSON Schemas: the fields that people fill in, and JSON for what has no field. */
import {useId, type ReactNode} from 'react';

export interface JsonSchema {
  type?: string | string[];
  title?: string;
  description?: string;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  items?: JsonSchema;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  format?: string;
}

/** Values are kept as they were typed; `valueOf` makes them what the schema says. */
export type Typed = Record<string, string>;

const typeOf = (schema: JsonSchema): string => {
  const type = Array.isArray(schema.type) ? schema.type.find(one => one !== 'null') : schema.type;
  return type ?? (schema.properties ? 'object' : schema.enum ? 'string' : 'any');
};

/** The text of a value in its field. */
export function textOf(schema: JsonSchema, value: unknown): string {
  if (value === undefined || value === null) return '';
  const type = typeOf(schema);
  if (type === 'array' && Array.isArray(value) && value.every(one => typeof one === 'string')) return value.join('\n');
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}

/** The value of a text. An empty text is none, where the field may be left out. @throws Error for a text that does not fit. */
export function valueOf(name: string, schema: JsonSchema, text: string, required: boolean): unknown {
  const type = typeOf(schema);
  if (text.trim() === '' && !(type === 'string' && required && (schema.minLength ?? 0) === 0)) {
    if (required) throw new Error(`${name} is needed`);
    return undefined;
  }
  if (schema.enum) return schema.enum.find(one => textOf(schema, one) === text) ?? text;
  if (type === 'string') return text;
  if (type === 'boolean') return text === 'true';
  if (type === 'number' || type === 'integer') {
    const value = Number(text);
    if (!Number.isFinite(value) || (type === 'integer' && !Number.isInteger(value))) throw new Error(`${name} is to be ${type === 'integer' ? 'a whole number' : 'a number'}`);
    return value;
  }
  if (type === 'array' && (schema.items === undefined || typeOf(schema.items) === 'string') && !text.trimStart().startsWith('[')) {
    return text.split('\n').map(line => line.trim()).filter(line => line !== '');
  }
  try {
    return JSON.parse(text);
  } catch {
    if (type === 'any') return text;
    throw new Error(`${name} is to be JSON`);
  }
}

export function SchemaField({name, label, schema, required, value, onChange, after}: {
  name: string; label?: string | undefined; schema: JsonSchema; required: boolean; value: string; onChange: (text: string) => void; after?: ReactNode;
}) {
  const id = useId();
  const type = typeOf(schema);
  const common = {id, name, required, dir: 'auto', 'aria-describedby': schema.description ? `${id}-hint` : undefined};
  let control: ReactNode;
  if (schema.enum) {
    control = (
      <select {...common} value={value} onChange={event => onChange(event.target.value)}>
        <option value="">Choose…</option>
        {schema.enum.map(one => <option key={textOf(schema, one)} value={textOf(schema, one)}>{textOf(schema, one)}</option>)}
      </select>
    );
  } else if (type === 'boolean') {
    control = (
      <select {...common} value={value} onChange={event => onChange(event.target.value)}>
        <option value="">Choose…</option>
        <option value="true">Yes</option>
        <option value="false">No</option>
      </select>
    );
  } else if (type === 'number' || type === 'integer') {
    control = <input {...common} inputMode="decimal" type="number" step={type === 'integer' ? 1 : 'any'} min={schema.minimum} max={schema.maximum} value={value} onChange={event => onChange(event.target.value)} />;
  } else if (type === 'string' && (schema.maxLength ?? Infinity) <= 120) {
    control = <input {...common} type="text" maxLength={schema.maxLength} value={value} onChange={event => onChange(event.target.value)} />;
  } else {
    const isText = type === 'string' || type === 'array';
    control = <textarea {...common} rows={isText ? 3 : 5} className={isText ? '' : 'mono'} value={value} onChange={event => onChange(event.target.value)} />;
  }
  return (
    <div className="field">
      <label className="field-label" dir="auto" htmlFor={id}>{label ?? schema.title ?? name}{required ? '' : ' (optional)'}</label>
      {control}
      {after}
      {schema.description && <span className="field-hint" id={`${id}-hint`}>{schema.description}</span>}
      {type === 'array' && !schema.enum && <span className="field-hint">One per line.</span>}
    </div>
  );
}
