import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { checkSecretKeys } from './secret-keys.ts'

const wrapped = 'vault:v1:abcd'
const place = { GATEHOUSE_TRANSIT_ADDRESS: 'https://bao.example.com:8200', GATEHOUSE_TRANSIT_KEY: 'transit/gatehouse' }
const secret = { GATEHOUSE_SECRET_KEY: wrapped }

test.each([
  [secret, 'GATEHOUSE_TRANSIT_KEY: '],
  [{ ...secret, GATEHOUSE_TRANSIT_KEY: 'gatehouse' }, 'GATEHOUSE_TRANSIT_KEY: '],
  [{ ...secret, GATEHOUSE_TRANSIT_KEY: 'transit/gatehouse' }, 'GATEHOUSE_TRANSIT_ADDRESS: '],
  [{ ...secret, ...place, GATEHOUSE_TRANSIT_ADDRESS: 'http://bao.example.com' }, 'GATEHOUSE_TRANSIT_ADDRESS: http is'],
  [{ ...secret, ...place }, 'GATEHOUSE_TRANSIT_ROLE: '],
  [{ ...secret, ...place, GATEHOUSE_TRANSIT_TOKEN_FILE: '/nowhere' }, 'GATEHOUSE_TRANSIT_TOKEN_FILE: /nowhere cannot'],
  [{ ...secret, ...place, GATEHOUSE_TRANSIT_ROLE: 'r', GATEHOUSE_TRANSIT_CA_FILE: '/nowhere' }, 'GATEHOUSE_TRANSIT_CA'],
  [
    { ...place, GATEHOUSE_TRANSIT_ROLE: 'r', GATEHOUSE_SECRET_KEY: `${wrapped},short` },
    'GATEHOUSE_SECRET_KEY: a key is',
  ],
])("settings that can't unwrap the secret key are rejected by the name of the variable: %o", (environment, message) => {
  expect(() => checkSecretKeys(environment)).toThrow(message)
})

test('a named pipe as token or certificate file is rejected without waiting for a writer', () => {
  const pipe = join(temporaryFolder(), 'pipe')
  execFileSync('mkfifo', [pipe])
  for (const name of ['GATEHOUSE_TRANSIT_TOKEN_FILE', 'GATEHOUSE_TRANSIT_CA_FILE']) {
    expect(() => checkSecretKeys({ ...secret, ...place, [name]: pipe })).toThrow(`${name}: ${pipe} is not a file`)
  }
})

test('a list may mix wrapped and plain keys', () => {
  const keys = `${wrapped},${randomBytes(32).toString('base64')}`
  expect(() => checkSecretKeys({ ...place, GATEHOUSE_TRANSIT_ROLE: 'r', GATEHOUSE_SECRET_KEY: keys })).not.toThrow()
})
