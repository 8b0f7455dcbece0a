import { defineFilter } from '#sdk/filter/filter.ts'
import { htmlErrors } from '#sdk/filter/page.ts'
import { text } from '#sdk/module/parameter-types.ts'
import { withParameters } from '#sdk/module/parameters.ts'

/** Answers at the URL of an `idp`; such a URL has this filter implicitly. */
export default defineFilter({
  className: 'filters.Issuer',
  ...withParameters({
    issuer: text({
      about: 'The name of the identity provider: what follows `/auth/idp/` in its uri.',
      required: true,
      reference: 'identity provider',
    }),
  }),
  answers: true,
  errors: htmlErrors,
  takesForms: true,
  summarize: ({ issuer }) => [{ label: 'identity provider', value: issuer }],
  create: ({ issuer }, { issuers }) => {
    if (issuers === undefined) throw new Error('no identity provider is configured')
    return { handle: (exchange) => issuers.handle(issuer, exchange) }
  },
})
