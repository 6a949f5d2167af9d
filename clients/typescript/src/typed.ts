import type {paths} from './schema.ts';

/** The types of requests and answers, taken from the OpenAPI document of the hub. */
export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** The paths that have a route with this method. */
export type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P] extends {[K in M]: {responses: unknown}} ? P : never;
}[keyof paths];

/** The description of a route. */
export type Route<M extends Method, P extends PathOf<M>> = paths[P] extends {[K in M]: infer R} ? R : never;

type Given<R, In extends string> = R extends {parameters: {[K in In]?: infer T}} ? Exclude<T, undefined> : never;
type BodyOf<R> = R extends {requestBody?: infer B}
  ? Exclude<B, undefined> extends {content: {'application/json': infer T}} ? T
  : Exclude<B, undefined> extends {content: unknown} ? Blob | Uint8Array | string : never
  : never;

type Field<Name extends string, T> = [T] extends [never] ? {[K in Name]?: undefined}
  : {} extends T ? {[K in Name]?: T} : {[K in Name]: T};

/** The path parameters, query, body and settings of one request. */
export type Request<M extends Method, P extends PathOf<M>> =
  & Field<'path', Given<Route<M, P>, 'path'>>
  & Field<'query', Given<Route<M, P>, 'query'>>
  & Field<'body', BodyOf<Route<M, P>>>
  & Settings;

/** Settings of one request. */
export interface Settings {
  signal?: AbortSignal | undefined;
  headers?: Record<string, string> | undefined;
  /** The key under which a repeated `POST` gives the first answer again. Each `POST` gets one by itself. */
  idempotencyKey?: string | undefined;
  /** Another bound than that of the client, in milliseconds; 0 for none. */
  timeoutMs?: number | undefined;
}

type Json<T> = T extends {content: {'application/json': infer B}} ? B : undefined;
/** The body of the answer of a route. */
export type Answer<M extends Method, P extends PathOf<M>> = Route<M, P> extends {responses: infer R}
  ? {[S in keyof R]: S extends 200 | 201 | 202 | 204 ? Json<R[S]> : never}[keyof R] extends infer A
    ? [Exclude<A, undefined>] extends [never] ? undefined : Exclude<A, undefined> : never
  : never;

/** The element type of the lists of a route: the only array among the fields of its answer. */
export type Item<A> = {[K in keyof A]-?: A[K] extends readonly (infer T)[] ? T : never}[keyof A];
