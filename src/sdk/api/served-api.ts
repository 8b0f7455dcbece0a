import type { RoutesById } from '#sdk/contract/routes.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import {
  type ApiDescription,
  type ApiOperation,
  apiFile,
  apiPlace,
  DescribedApi,
  type OperationDescription,
  type PlaceOf,
} from './api-description.ts'
import { answer } from './json-answer.ts'
import { answerRoute, type Handler, type Routes } from './routes.ts'

/** What the documents of an API say about an operation, and what answers it. */
export interface Operation<P> extends OperationDescription {
  readonly handle: Handler<P>
}

/** By id. */
export type Operations<P> = Readonly<Record<string, Operation<P>>>

/** Operations whose routes are in a contract. */
export type OperationTable<P> = Readonly<Record<string, Omit<Operation<P>, 'route'>>>

/** The operations with their routes, by id: each has one, and each route has an operation. */
export function routed<P, R extends RoutesById>(
  routes: R,
  operations: { readonly [I in keyof R]: OperationTable<P>[string] },
): Operations<P> {
  return Object.fromEntries(
    Object.entries<OperationTable<P>[string]>(operations).map(([id, operation]) => {
      const route = routes[id]
      if (route === undefined) throw new Error(`the operation "${id}" has no route`)
      return [id, { ...operation, route }]
    }),
  )
}

/** An API whose handlers are apart from its description, since they load on first use: each operation has one. */
export const servedBy = <P, I extends string>(
  { description }: DescribedApi<I>,
  handlers: Readonly<Record<NoInfer<I>, Handler<P>>>,
  documentsAt?: PlaceOf,
): ServedApi<P> =>
  new ServedApi({
    ...description,
    operations: Object.fromEntries(
      Object.entries<OperationDescription>(description.operations).map(([id, operation]) => [
        id,
        { ...operation, handle: handlers[id as I] },
      ]),
    ),
    documentsAt,
  })

interface ServedDescription<P> extends Omit<ApiDescription, 'operations'> {
  readonly operations: Operations<P>
  /** Where the API is, if callers may read its documents below it. */
  readonly documentsAt?: PlaceOf | undefined
}

/** An API with one table of operations, so that each of them is described and served, and nothing else. */
export class ServedApi<P> extends DescribedApi {
  readonly #described: ServedDescription<P>
  readonly #routes: Routes<P>

  constructor(described: ServedDescription<P>) {
    super(described)
    this.#described = described
    const { operations, documentsAt } = described
    this.#routes = {
      ...(documentsAt === undefined ? {} : this.#documentRoutes(documentsAt)),
      ...Object.fromEntries(Object.values(operations).map(({ route, handle }) => [route, handle])),
    }
  }

  /** The API at its mount, which may end in a slash. */
  filter(parts: P): { readonly handle: (exchange: Exchange) => Promise<GatewayResponse> } {
    return {
      handle: (exchange) => this.answer(parts, exchange, exchange.pathInfo === '/' ? '' : exchange.pathInfo),
    }
  }

  /** `path` is the path below that of the API. Throws NOT_FOUND and METHOD_NOT_ALLOWED. */
  answer(parts: P, exchange: Exchange, path: string): Promise<GatewayResponse> {
    return answerRoute(this.#routes, parts, exchange, path)
  }

  override only(keep: (operation: ApiOperation) => boolean): ServedApi<P> {
    const ids = new Set(this.operations.filter(keep).map(({ id }) => id))
    const operations = Object.entries(this.#described.operations).filter(([id]) => ids.has(id))
    return new ServedApi({ ...this.#described, operations: Object.fromEntries(operations) })
  }

  #documentRoutes(place: PlaceOf): Routes<P> {
    return Object.fromEntries(
      Object.values(apiFile).map((file) => [
        `GET /${file}`,
        async (_: P, exchange: Exchange) => answer(this.document(file, apiPlace(place, exchange))),
      ]),
    )
  }
}
