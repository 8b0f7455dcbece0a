import { runCommand } from '#testing/gateway/command.ts'

/** Adds a user to the embedded directory of a configuration, like an administrator. */
export async function addPerson(
  config: string,
  dataFolder: string,
  login: string,
  password: string,
  more: readonly string[] = [],
): Promise<void> {
  const args = ['user', 'add', login, '--config', config, '--data', dataFolder, ...more]
  const { code, stdout, stderr } = await runCommand(args, `${password}\n`)
  if (code !== 0) throw new Error(`gatehouse user add exited with ${code}: ${stdout}${stderr}`)
}
