import type { JsonPath } from '#kernel/json-path.ts'
import type { Params } from '#sdk/params.ts'
import type { BodyTemplate } from './body-template.ts'
import type { HeaderTemplate } from './header-template.ts'
import type { OperationName } from './operations.ts'
import type { RequestTemplate } from './request-template.ts'

/** One request of the API as it is configured. */
export interface Operation {
  readonly name: OperationName
  readonly request: RequestTemplate
  readonly headers: readonly HeaderTemplate[]
  readonly body: BodyTemplate | undefined
  /** Where in the answer the users, groups or names stand. */
  readonly items: JsonPath
  /** How many there are in all. */
  readonly total: JsonPath | undefined
  /** The cursor of the next page. */
  readonly next: JsonPath | undefined
  /** The statuses of success; any 2xx when undefined. */
  readonly statuses: ReadonlySet<number> | undefined
  readonly notFound: ReadonlySet<number>
}

export type Operations = Readonly<Partial<Record<OperationName, Operation>>>

/** Whether any part of the request has a place of this name. */
export const hasPlace = ({ request, headers, body }: Operation, name: string): boolean =>
  request.places.includes(name) ||
  headers.some(({ places }) => places.includes(name)) ||
  (body?.places.some((place) => place.name === name) ?? false)

/** Whether the request is written at all, be it in order or not. */
export const isWritten = (params: Params, name: OperationName): boolean =>
  params.values(name).some((value) => value !== '')
