import { userIdName } from '#identity/mapping/mapped-value.ts'
import { GatewayError } from '#kernel/errors.ts'
import { auditedCall } from '#sdk/audited-call.ts'
import type { Mapping } from '#sdk/mapping.ts'
import { hasPasswords, type Target, type TargetRequest } from '#sdk/target.ts'
import { type TargetUser, targetUser } from '#sdk/target-user.ts'
import { TaskFields } from '#sdk/task-fields.ts'
import { next, type TaskModule, type WorkflowTask, type WorkflowUser } from '#sdk/workflow-task.ts'
import { takeVersion } from '#sdk/workflow-user.ts'
import { applyUser } from './apply-user.ts'

const fields = {
  target: { about: 'The target that the user is written to.', required: true },
  sync: {
    about: '`true` makes the target equal to the user, removing what the user does not have; `false` only adds.',
    required: true,
  },
  setPassword: {
    about: "Also sets the user's password, if the caller gave one; `false` when absent.",
    required: false,
  },
  onlyPassedInAttributes: {
    about: 'Touches only attributes that the user has, so that none is cleared; `false` when absent.',
    required: false,
  },
  attributes: {
    about:
      'The attributes that may be written; when empty, all that the user has and all that the request took from it.',
    required: false,
  },
} as const

interface Config {
  readonly target: string
  readonly sync: boolean
  readonly setPassword: boolean
  readonly onlyPassedInAttributes: boolean
  readonly attributes: readonly string[]
}

const provision: TaskModule = {
  taskType: 'provision',
  fields,
  branches: false,
  prepare: (given, path, issues, context) => {
    const read = new TaskFields(fields, given, path, issues)
    const attributes = read.texts('attributes')
    const config: Config = {
      target: read.text('target'),
      sync: read.flag('sync', true),
      setPassword: read.flag('setPassword', false),
      onlyPassedInAttributes: read.flag('onlyPassedInAttributes', false),
      attributes: attributes.map(({ text }) => text),
    }
    if (config.target !== '') context.refer('target', config.target, read.pathOf('target'))
    const places = attributes.map(({ text, path: at }) => ({ attribute: text, path: at }))
    return {
      calls: [],
      flow: {
        reads: [],
        produces: [],
        dropsOthers: false,
        opaque: false,
        provisions: { target: config.target, attributes: places.length === 0 ? undefined : places },
      },
      create: async ({ targets }) =>
        provisionTask(config, targets.get(config.target), targets.mapping?.(config.target)),
    }
  },
}

export default provision

function provisionTask(config: Config, target: Target, mapping: Mapping | undefined): WorkflowTask {
  return {
    async run({ user, forTarget }) {
      const request = forTarget(config.target)
      const mapped = await targetUser(user, mapping)
      const listed = config.attributes.length === 0 ? ownNames(mapped) : config.attributes
      const attributes = config.onlyPassedInAttributes ? listed.filter((name) => mapped.attributes.has(name)) : listed
      const newUserID = await newLogin(user, mapped, mapping)
      const logins = newUserID === undefined ? [mapped.userID] : [mapped.userID, newUserID]
      const read = takeVersion(user, config.target, logins)
      const login = await applyUser(
        target,
        mapped,
        {
          attributes,
          addOnly: !config.sync,
          expectedVersion: read?.version,
          expectedGroup: read?.group,
          newUserID,
        },
        request,
      )
      if (config.setPassword) await setPassword(target, config.target, user, login, request)
      return next
    },
  }
}

/** What the new login is at the target; undefined when it stays what it is there. */
async function newLogin(
  user: WorkflowUser,
  present: TargetUser,
  mapping: Mapping | undefined,
): Promise<string | undefined> {
  const { newUserID } = user
  if (newUserID === undefined) return undefined
  const renamed = mapping === undefined ? newUserID : (await targetUser({ ...user, userID: newUserID }, mapping)).userID
  return renamed === present.userID ? undefined : renamed
}

/** All that the user has, and what was taken from it. */
function ownNames({ attributes, cleared = [] }: TargetUser): string[] {
  const gone = cleared.filter((name) => !attributes.has(name) && name !== userIdName)
  return [...attributes.names(), ...gone]
}

/** Uses the password once: it is gone from the user before the target is called. */
async function setPassword(
  target: Target,
  name: string,
  user: WorkflowUser,
  userID: string,
  request: TargetRequest,
): Promise<void> {
  const { password } = user
  if (password === undefined) return
  if (!hasPasswords(target)) throw new GatewayError('NOT_SUPPORTED', `target "${name}" cannot store passwords`)
  delete user.password
  const holder = { userID, attributes: user.attributes, groups: user.groups }
  const change = { subject: 'attribute', action: 'replace', attribute: 'password' } as const
  await auditedCall(
    request,
    () => [change],
    (audited) => target.setUserPassword(holder, password, audited),
  )
}
