import type { FastifyServerOptions } from 'fastify'

const refuse = (): never => {
  throw new Error('routes have no schemas here')
}

/** Values are checked by the APIs themselves. Without this, Fastify loads two compilers of schemas for nothing. */
export const noSchemas: NonNullable<FastifyServerOptions['schemaController']> = {
  compilersFactory: { buildValidator: refuse, buildSerializer: refuse },
}
