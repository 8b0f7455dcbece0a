import { inject, test } from 'vitest'
import { walks } from '#testing/stories/documented-commands.ts'
import { walkThrough } from '#testing/stories/walk.ts'

const needsSlapd = (page: string): boolean => page === 'examples/ldap-target/README.md'
const possible = walks.filter(
  ({ page }) => page !== 'docs/guides/with-curl.md' && (inject('slapd') !== '' || !needsSlapd(page)),
)

test.each(possible)('the commands of $page work', walkThrough)
