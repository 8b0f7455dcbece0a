import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { catalog } from '#catalog/catalog.ts'
import { loadText } from '#testing/modules/check-text.ts'

test("a redirect to one of OpenUnison's pages is dropped, unless it leads to another host", () => {
  const [yaml = ''] = readFileSync('test/config-errors/openunison-pages.txt', 'utf8').split('---8<---')
  const groups = loadText(yaml, catalog).configuration?.resultGroups
  expect(groups?.get('logout')?.results).toEqual([])
  expect(groups?.get('failure')?.results).toEqual([{ type: 'header', source: 'static', value: 'x-failed=yes' }])
  expect(groups?.get('elsewhere')?.results).toHaveLength(1)
})
