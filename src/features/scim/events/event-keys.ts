import { publishedKey } from '#protocols/jwt/signing.ts'
import { keySetSchema, placeAtSegment } from '#sdk/api/api-description.ts'
import { ServedApi } from '#sdk/api/served-api.ts'
import { mainErrors } from '#sdk/contract/errors.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import { list } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'

const parameters = {
  key: list({
    about: 'The signing keys to publish, `keys/<name>.jwk` of the data folder; created when absent.',
    requirement: 'no, `scim-events`',
  }),
}

/** Publishes the public keys that event tokens are signed with, as a JWK Set, for their receivers. */
export default defineFilter({
  className: 'filters.EventKeys',
  parameters,
  answers: true,
  parse: (params, issues, context) => {
    const { key } = readParameters(parameters, params, issues, context)
    return { keys: key.length === 0 ? ['scim-events'] : key }
  },
  summarize: ({ keys }) => keys.map((value) => ({ label: 'key', value })),
  api: () => eventKeysApi.served(placeAtSegment),
  create: async ({ keys: names }, host) => {
    const keys = []
    for (const name of new Set(names)) keys.push(await publishedKey((await host.keys.signingKey(name)).publicKey))
    return eventKeysApi.filter(JSON.stringify({ keys }))
  },
})

const headers = { 'content-type': 'application/jwk-set+json', 'cache-control': 'public, max-age=300' }

/** Answers with the text of the keys. */
export const eventKeysApi = new ServedApi<string>({
  title: 'Event keys API',
  version: '1.0.0',
  answers: { KeySet: keySetSchema, Errors: mainErrors },
  bodies: {},
  failure: { description: 'What is wrong', schema: 'Errors' },
  operations: {
    getKeys: {
      route: 'GET',
      summary: 'The public keys that event tokens are signed with',
      answers: { '200': { description: 'Success', schema: 'KeySet', type: 'application/jwk-set+json' } },
      handle: async (body) => ({ status: 200, headers, body }),
    },
  },
})
