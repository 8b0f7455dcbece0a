import { createRegistry } from '#kernel/registry.ts'
import developmentIssuer from '#modules/filters/development-issuer/development-issuer.ts'
import scimGateway from '#modules/filters/scim-gateway/scim-gateway.ts'

/** Add a filter: one import above, one line below. */
export const filters = createRegistry('filter', [developmentIssuer, scimGateway])
