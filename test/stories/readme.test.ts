import { test } from 'vitest'
import { walks } from '#testing/stories/documented-commands.ts'
import { walkThrough } from '#testing/stories/walk.ts'

test.each(walks.filter(({ page }) => page === 'README.md'))('the commands of $page work', walkThrough)
