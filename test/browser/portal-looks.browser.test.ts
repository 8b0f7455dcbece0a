import { describe, expect, test } from 'vitest'
import { hasChromium } from '#testing/chromium.ts'
import { expectAccessible, isTooWide, looks, picture, settled, usePortal } from '#testing/portal-browser.ts'

/** Pages that not every user has, as an administrator sees them; portal-pages has the others. */
const pages = [
  'token',
  'register',
  'reports',
  'reports/Open%20Approvals',
  'dashboard',
  'security',
  'signed-in',
  'nowhere',
]

describe.skipIf(!hasChromium())('the pages of special users', () => {
  const { visit, open } = usePortal()

  test.each(looks)('pages of an administrator are accessible and fit the window: $name', async ({ name, options }) => {
    const { page, complaints } = await visit('/portal', 'linus', options)
    await settled(page)
    for (const path of pages) {
      await page.goto(`/portal/${path}`)
      await settled(page)
      await expectAccessible(page, `${name} ${path}`)
      await picture(page, `${path.replaceAll(/\W+/g, '-')}-${name}`)
      expect({ path, wide: await isTooWide(page) }).toEqual({ path, wide: false })
    }
    expect(complaints).toEqual([])
  })

  test.each(looks)('so are those for anonymous users: $name', async ({ name, options }) => {
    const { page, complaints } = await open('/join', options)
    await settled(page)
    await expectAccessible(page, `${name} registration`)
    await picture(page, `join-${name}`)
    await page.goto('/portal')
    await page.getByLabel('User name').waitFor()
    await expectAccessible(page, `${name} login`)
    await picture(page, `login-${name}`)
    expect(complaints.filter((text) => !text.includes('401'))).toEqual([])
  })
})
