import { defineFilter } from '#sdk/filter/filter.ts'
import { type AccountSettings, accountErrors, parameters, parseAccount } from './settings.ts'

/** The caller's own sessions and second factors. */
export default defineFilter<AccountSettings>({
  className: 'filters.Account',
  parameters,
  answers: true,
  errors: accountErrors,
  parse: parseAccount,
  chains: ({ stepUpChain, enrolChain }) => [...new Set([stepUpChain, enrolChain])],
  summarize: ({ stepUpChain }) => [{ label: 'step-up chain', value: stepUpChain }],
  /** Loaded on first use: a gateway without this filter is smaller and starts sooner. */
  create: async (settings, host) =>
    (await import('#modules/filters/account/account-api.ts')).createAccount(settings, host),
})
