import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** Adds a user to the embedded directory of a configuration, like an administrator. */
export async function addPerson(
  config: string,
  dataFolder: string,
  login: string,
  password: string,
  more: readonly string[] = [],
): Promise<void> {
  const child = spawn('bin/gatehouse', ['user', 'add', login, '--config', config, '--data', dataFolder, ...more])
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  child.stdin.end(`${password}\n`)
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`gatehouse user add ended with ${code}: ${output}`)
}
