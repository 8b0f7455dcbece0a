import type { PasswordHost } from '#features/passwords/host.ts'
import { placeAtSegment } from '#sdk/api/api-description.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import { jsonErrors } from '#sdk/http/error-format.ts'
import { passwordResetApi } from './reset-api.ts'
import { parameters, parseReset, type ResetSettings } from './reset-settings.ts'
import type { OffersResetLinks } from './service/reset-links.ts'

/** New passwords for users who forgot theirs, by a link in a mail. */
export default defineFilter<ResetSettings>({
  className: 'filters.Passwords',
  parameters,
  answers: true,
  errors: jsonErrors,
  takesForms: true,
  parse: parseReset,
  offers: ({ links }): OffersResetLinks => ({ resetLinks: links }),
  summarize: ({ publicURL, given }) => [
    { label: 'password reset links', value: publicURL },
    { label: 'passwords written to', value: given.passwordTarget ?? 'the directory' },
  ],
  api: () => passwordResetApi.served(placeAtSegment, { users: passwordResetApi }),
  /** Loaded on first use: a gateway without this filter is smaller and starts sooner. */
  create: async (settings, host: PasswordHost) =>
    (await import('./password-reset.ts')).createPasswordReset(settings, host),
})
