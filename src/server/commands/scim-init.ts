import { hash, randomBytes } from 'node:crypto'
import { existsSync, statSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { readArguments } from '#server/commands/arguments.ts'
import type { CommandIo, RunCommand } from '#server/commands/commands.ts'
import {
  fieldsOf,
  type ScimClientName,
  scimClientNames,
  scimClientSetups,
  scimClientYaml,
  scimPath,
  tokenSecret,
} from '#server/commands/scim-client-setup.ts'

export const scimInitUsage = `Usage: gatehouse scim init --client NAME --url URL [--out DIR]

Writes the configuration of a SCIM gateway for one client, with a fresh token, and prints what to enter in the client.
Existing files are never overwritten.

  --client NAME     ${scimClientNames.join(', ')}
  --url URL         the address under which the client reaches the gateway, such as https://idm.example.com
  --out DIR         the configuration folder (config); it may have the configurations of other clients`

const options = {
  client: { type: 'string' },
  url: { type: 'string' },
  out: { type: 'string', default: 'config' },
} as const

/** `gatehouse scim init`. */
export const scimInit: RunCommand = async (args, io) => {
  const read = readArguments(args, { usage: scimInitUsage, options, positionals: 1 }, io)
  if ('exit' in read) return read.exit
  const { out } = read.values
  const wrong = (message: string): number => {
    io.stderr(`gatehouse scim init: ${message}`)
    return 2
  }
  const client = scimClientNames.find((known) => known === read.values.client)
  if (client === undefined) {
    const given = read.values.client === undefined ? '' : `, not "${read.values.client}"`
    return wrong(`--client must be one of ${scimClientNames.join(', ')}${given}`)
  }
  const url = readUrl(read.values.url)
  if (typeof url === 'string') return wrong(`--url: ${url}`)

  // Letters and digits only, which every provider takes.
  const token = randomBytes(32).toString('hex')
  const secret = tokenSecret(client)
  const files = { yaml: join(out, `${client}.yaml`), token: join(out, 'secrets', secret.name, secret.key) }
  try {
    await write(files, scimClientYaml({ client, host: url.hostname, origin: url.origin }), token)
  } catch (error) {
    io.stderr(`gatehouse scim init: ${error instanceof Error ? error.message : String(error)}`)
    return 1
  }
  const port = url.port === '' ? '443' : url.port
  print({ client, address: url.origin + scimPath(client), port, token, files, out }, io)
  return 0
}

/** The address, or what is wrong with it. */
function readUrl(text: string | undefined): URL | string {
  const example = 'give the address that the client reaches, such as https://idm.example.com'
  if (text === undefined) return `missing; ${example}`
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined) return `"${text}" is not a URL; ${example}`
  if (url.protocol !== 'https:') return `must begin with https://, since the token is sent with every call; ${example}`
  if (url.username !== '' || url.password !== '') return `must not have a user or a password; ${example}`
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '') {
    return `must end after the host and port, since the command chooses the path; ${example}`
  }
  if (!/^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/.test(url.hostname)) return `needs a host name; ${example}`
  return url
}

interface Files {
  readonly yaml: string
  readonly token: string
}

/** Writes both files or none. Throws an Error where one of them exists, or the folder is a file. */
async function write(files: Files, yaml: string, token: string): Promise<void> {
  const found = [files.yaml, files.token].find((file) => existsSync(file))
  if (found !== undefined) {
    throw new Error(`${found} exists, and nothing was changed. Choose another --out, or move the file away first.`)
  }
  const folder = dirname(files.yaml)
  if (existsSync(folder) && !statSync(folder).isDirectory()) {
    throw new Error(`--out: ${folder} is not a folder, and nothing was changed. Give a folder, or a name that is free.`)
  }
  await mkdir(folder, { recursive: true })
  await mkdir(dirname(files.token), { recursive: true, mode: 0o700 })
  await writeFile(files.token, `sha256:${hash('sha256', token, 'hex')}\n`, { flag: 'wx', mode: 0o600 })
  try {
    await writeFile(files.yaml, yaml, { flag: 'wx' })
  } catch (error) {
    await rm(files.token)
    throw error
  }
}

interface Written {
  readonly client: ScimClientName
  readonly address: string
  readonly port: string
  readonly token: string
  readonly files: Files
  readonly out: string
}

function print({ client, address, port, token, files, out }: Written, io: CommandIo): void {
  const { title, place } = scimClientSetups[client]
  const fields = fieldsOf(client, { address, token })
  const width = Math.max(...fields.map(([label]) => label.length))
  const lines = [
    `Wrote ${files.yaml}: the gateway for ${title}, at ${address}`,
    `Wrote ${files.token}: the SHA-256 of the token, which the gateway compares with`,
    '',
    `Enter in ${place}:`,
    ...fields.map(([label, value]) => `  ${label.padEnd(width)}  ${value}`),
    '',
    'The token is stored nowhere, so copy it now. It does not expire. To replace it, add a line with a new token to',
    `${files.token}, enter it in the client, and then remove the old line.`,
    '',
    'Next:',
    `  gatehouse check --config ${out}`,
    `  gatehouse serve --config ${out} --listen 0.0.0.0:${port} --tls-cert CERTIFICATE.pem --tls-key KEY.pem`,
    'or, behind a proxy that ends TLS, passes the Host header on and sends X-Forwarded-Proto:',
    `  gatehouse serve --config ${out} --listen 0.0.0.0:8080 --trusted-proxy ADDRESS`,
  ]
  for (const line of lines) io.stdout(line)
}
