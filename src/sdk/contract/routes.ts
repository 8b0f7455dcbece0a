/** The method of an operation and its path below that of the API, such as `GET /approvals/{id}`; empty for that path. */
export type Route = Method | `${Method} /${string}`

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** Routes by the ids of their operations. */
export type RoutesById = Readonly<Record<string, Route>>

/** The names in braces. */
export type NamesIn<R extends string> = R extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never
