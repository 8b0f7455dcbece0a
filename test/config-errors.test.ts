import { globSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { describe, expect, test } from 'vitest'
import { catalog } from '#catalog/catalog.ts'
import { checkText } from '#testing/modules/check-text.ts'

/**
 * Each file has YAML (several files start with a line `### name.yaml`), a cut line, and exactly the output of
 * `gatehouse check`. To report a wrong or missing message, add a file here, without code.
 */
const cut = '---8<---\n'
const goldenFiles = globSync('test/config-errors/*.txt').sort()

describe('gatehouse check', () => {
  for (const file of goldenFiles) {
    test(basename(file, '.txt'), () => {
      const [yaml = '', expected] = readFileSync(file, 'utf8').split(cut)
      expect(expected, 'the file has a cut line').toBeDefined()
      expect(checkText(yaml, catalog, { environment: { HOST_FROM_ENVIRONMENT: 'env.example.com' } })).toEqual(
        (expected ?? '').split('\n').filter((line) => line !== ''),
      )
    })
  }

  test('there are files to check', () => expect(goldenFiles.length).toBeGreaterThan(20))
})
