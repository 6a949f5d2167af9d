/** The reference of the API: the OpenAPI document of this very hub, with a line to copy for each route. It needs no workspace. */
import {useQuery} from '@tanstack/react-query';
import {useDeferredValue, useEffect, useId, useMemo, useState, type ReactNode} from 'react';
import {CopyButton} from '../copy.tsx';
import {hub, isRefused} from '../hub.ts';
import {Brand, SignIn} from '../pages/session.tsx';
import type {Place} from '../router.ts';
import {ThemeSwitch} from '../shell/theme.tsx';
import {Badge, counted, Failure, Loading} from '../ui.tsx';
import {answersOf, curl, fieldsOf, groups, namedIn, refusalsOf, resolved, typeOf, variantsOf, type OpenApi, type Operation, type Parameter, type Schema} from './document.ts';

const TONES: Record<string, 'good' | 'bad' | 'busy' | 'ask' | 'neutral'> = {get: 'neutral', post: 'good', put: 'busy', patch: 'busy', delete: 'bad'};

export default function ReferencePage({place}: {place: Place}) {
  const api = useQuery({
    queryKey: ['openapi'],
    staleTime: Infinity,
    queryFn: async ({signal}) => (await (await hub.read('/openapi.json', {signal})).json()) as OpenApi,
  });
  if (isRefused(api.error, 'UNAUTHORIZED')) return <SignIn />;
  return (
    <main className="reference">
      <div className="page">
        <header className="page-head">
          <a href="#/" className="home"><Brand /><span className="visually-hidden">: to the console</span></a>
          <span className="spacer" />
          <a className="button quiet" href={`${hub.url}/openapi.json`}>OpenAPI document</a>
          <ThemeSwitch />
        </header>
        <h1>API reference</h1>
        {api.isPending && <Loading what="the description of the API" />}
        {api.isError && <Failure error={api.error} retry={() => void api.refetch()} />}
        {api.data && <Routes api={api.data} linked={place.rest[0]} />}
      </div>
    </main>
  );
}

function Routes({api, linked}: {api: OpenApi; linked: string | undefined}) {
  const [words, setWords] = useState('');
  const wanted = useDeferredValue(words);
  const found = useMemo(() => groups(api, wanted), [api, wanted]);
  const many = found.reduce((sum, group) => sum + group.operations.length, 0);
  // Once for an address: a search that drops the route and finds it again takes the focus from nobody.
  useEffect(() => {
    const route = linked === undefined ? null : document.getElementById(idOf(linked));
    route?.querySelector('summary')?.focus({preventScroll: true});
    route?.scrollIntoView({block: 'start'});
  }, [linked]);
  return (
    <>
      <p className="lead">Version {api.info.version}. {api.info.description && <Words text={api.info.description} />}</p>
      <input type="search" aria-label="Find a route" placeholder="Find a route: a method, a part of a path, words" value={words} onChange={event => setWords(event.target.value)} />
      <p className="faint" role="status">{many === 0 ? 'No route has these words.' : counted(many, 'route')}</p>
      {found.map(({tag, text, operations}) => (
        <section key={tag} aria-label={tag}>
          <h2>{tag}</h2>
          {text !== '' && <p className="faint">{text}</p>}
          <ul className="rows-list">
            {operations.map(operation => <li key={operation.id}><Route api={api} operation={operation} isLinked={operation.id === linked} /></li>)}
          </ul>
        </section>
      ))}
    </>
  );
}

/** The element of a route. */
const idOf = (operation: string): string => `route-${operation}`;

/** The content is made when it is opened, since a schema may contain itself. */
function Fold({title, children, isLinked = false, id, className = ''}: {title: ReactNode; children: () => ReactNode; isLinked?: boolean; id?: string; className?: string}) {
  const [isOpen, setOpen] = useState(isLinked);
  useEffect(() => {
    if (isLinked) setOpen(true);
  }, [isLinked]);
  return (
    <details id={id} className={className} open={isOpen} onToggle={event => setOpen(event.currentTarget.open)}>
      <summary>{title}</summary>
      {isOpen && children()}
    </details>
  );
}

function Route({api, operation, isLinked}: {api: OpenApi; operation: Operation; isLinked: boolean}) {
  const {id, method, path, text} = operation;
  const first = /^.*?\.(?=\s|$)/s.exec(text)?.[0] ?? text;
  const title = <>
    <Badge tone={TONES[method] ?? 'neutral'}>{method.toUpperCase()}</Badge>
    <code className="route-path">{path}</code>
    <span className="faint route-about"><Words text={first} /></span>
  </>;
  const more = text.slice(first.length).trim();
  return <Fold id={idOf(id)} className="route" title={title} isLinked={isLinked}>{() => <Details api={api} operation={operation} text={more} />}</Fold>;
}

/** The parts of a route, and the text after the sentence of its title. */
function Details({api, operation, text}: {api: OpenApi; operation: Operation; text: string}) {
  const {id, described} = operation;
  const command = curl(api, operation, hub.url);
  const body = described.requestBody;
  const refusals = refusalsOf(operation);
  return (
    <div className="route-body">
      {text !== '' && text.split(/\n{2,}/).map((paragraph, at) => <p key={at}><Words text={paragraph} /></p>)}
      <p className="faint">Operation <a href={`#/reference/${encodeURIComponent(id)}`}><code>{id}</code></a></p>
      <Part title="Try it"><pre className="json" tabIndex={0} aria-label="Command">{command}</pre><CopyButton text={command} /></Part>
      {(described.parameters ?? []).length > 0 && (
        <Part title="Parameters">
          <ul className="api-fields">{described.parameters!.map(one => <Named key={`${one.in} ${one.name}`} api={api} name={one.name} schema={one.schema} isRequired={one.required ?? false} place={one.in} text={textOf(one)} />)}</ul>
        </Part>
      )}
      {body && (
        <Part title={body.required ? 'Body' : 'Body (optional)'}>
          {body.description && <p><Words text={body.description} /></p>}
          {Object.entries(body.content ?? {}).map(([kind, {schema}]) => <Typed key={kind} api={api} kind={kind} schema={schema} />)}
        </Part>
      )}
      <Part title="Answers">
        {answersOf(operation).map(([status, answer]) => (
          <div key={status} className="route-answer">
            <p><Badge tone="good">{status}</Badge> <Words text={answer.description ?? ''} /></p>
            {Object.entries(answer.content ?? {}).map(([kind, {schema}]) => <Typed key={kind} api={api} kind={kind} schema={schema} />)}
          </div>
        ))}
        {refusals.length > 0 && <p className="faint">Refusals: {refusals.map(({status, codes}) => [status, ...codes].join(' ')).join(', ')}</p>}
      </Part>
    </div>
  );
}

const textOf = ({description, schema}: Parameter): string => description ?? schema?.description ?? '';

function Part({title, children}: {title: string; children: ReactNode}) {
  const id = useId();
  return <section aria-labelledby={id}><h3 id={id}>{title}</h3>{children}</section>;
}

/** A body: its kind, the name of its schema, and the fields. */
function Typed({api, kind, schema}: {api: OpenApi; kind: string; schema: Schema | undefined}) {
  return <><p><code>{typeOf(schema)}</code> <span className="faint">{kind}</span></p>{schema && <Shape api={api} schema={schema} />}</>;
}

/** The fields of a schema, or the kinds that it may be. */
function Shape({api, schema}: {api: OpenApi; schema: Schema}) {
  const known = resolved(api, schema);
  const fields = fieldsOf(api, known);
  const variants = variantsOf(api, known);
  return (
    <>
      {known.description && <p className="faint"><Words text={known.description} /></p>}
      {known.enum && <p><code>{typeOf(known)}</code></p>}
      {fields.length > 0 && <ul className="api-fields">{fields.map(one => <Named key={one.name} api={api} {...one} text={one.schema.description ?? ''} />)}</ul>}
      {variants.length > 0 && <ul className="api-fields">{variants.map((one, at) => (
        <li key={at}>{one.$ref === undefined ? <Fold title={<code>{typeOf(one)}</code>}>{() => <Shape api={api} schema={one} />}</Fold> : <Inside api={api} schema={one} />}</li>
      ))}</ul>}
      {fields.length === 0 && variants.length === 0 && <Inside api={api} schema={known} />}
    </>
  );
}

/** A field or a parameter. */
function Named({api, name, schema, isRequired, place, text}: {api: OpenApi; name: string; schema: Schema | undefined; isRequired: boolean; place?: string; text: string}) {
  return (
    <li>
      <p><code className="field-name">{name}</code> <code className="faint">{typeOf(schema)}</code>{place && <span className="faint"> in {place}</span>}{isRequired && <> <Badge>required</Badge></>}</p>
      {text !== '' && <p className="faint"><Words text={text} /></p>}
      {schema && <Inside api={api} schema={schema} />}
    </li>
  );
}

/** The schemas that a type names, each to be opened; and the fields of an object without a name. */
function Inside({api, schema}: {api: OpenApi; schema: Schema}) {
  const names = namedIn(schema);
  return (
    <>
      {names.map(name => <Fold key={name} title={<code>{name}</code>}>{() => <Shape api={api} schema={{$ref: `#/components/schemas/${name}`}} />}</Fold>)}
      {names.length === 0 && schema.properties && <Fold title="Fields">{() => <Shape api={api} schema={schema} />}</Fold>}
      {schema.items?.properties && <Fold title="Fields of each">{() => <Shape api={api} schema={schema.items!} />}</Fold>}
    </>
  );
}

/** Text in which names stand between backticks. */
function Words({text}: {text: string}) {
  return <>{text.split('`').map((part, at) => at % 2 === 1 ? <code key={at}>{part}</code> : part)}</>;
}
