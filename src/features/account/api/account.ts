import type { AccountHost } from '#features/account/host.ts'
import { placeBelow } from '#sdk/api/api-description.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import { accountApi } from './api-description.ts'
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
  api: ({ changePassword, offers }) => {
    const api = accountApi.only(
      ({ id, path }) =>
        (changePassword || id !== 'changePassword') &&
        (!path.startsWith('/factors/totp') || offers.includes('totp')) &&
        (!path.startsWith('/factors/passkey') || offers.includes('passkey')),
    )
    return api.served(placeBelow('/account'), { users: api })
  },
  /** Loaded on first use: a gateway without this filter is smaller and starts sooner. */
  create: async (settings, host: AccountHost) => (await import('./account-api.ts')).createAccount(settings, host),
})
