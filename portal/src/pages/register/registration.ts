import { useMutation } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import type { RegisterConfig, SubmittedResponse } from '#features/registration/contract/register.ts'
import type { FormAttributeView } from '#sdk/contract/forms.ts'
import { ApiError } from '../../api/call.ts'
import { submitRegistration } from '../../api/register.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { useDraft } from '../../components/draft.ts'
import {
  type Entries,
  fieldsOf,
  type Invitation,
  keyOf,
  noEntries,
  noPasswords,
  type Passwords,
  problemsOf,
  requestOf,
} from './entries.ts'
import type { Problem } from './field-rules.ts'
import { ownProof } from './human-proof.ts'
import { usePatterns } from './patterns.ts'
import { isProvider } from './provider-script.ts'
import { sortProblems } from './server-problems.ts'

interface RegistrationOptions {
  readonly config: RegisterConfig
  /** The signed-in user; empty if there is none. */
  readonly owner: string
  readonly invitation: Invitation | undefined
  readonly onSubmitted: (answer: SubmittedResponse, address: string) => void
}

/** The state of a registration form: its values, its problems, and its submission. */
export function useRegistration({ config, owner, invitation, onSubmitted }: RegistrationOptions) {
  const { t } = useTranslation()
  const fields = useMemo(() => fieldsOf(config, invitation), [config, invitation])
  const [entries, setEntries, forget] = useDraft<Entries>(owner, 'register', noEntries)
  const [passwords, setPasswords] = useState<Passwords>(noPasswords)
  const [trap, setTrap] = useState('')
  const [token, setToken] = useState('')
  const matches = usePatterns(fields)
  const problems = useMemo(
    () => problemsOf(config, fields, entries, passwords, matches),
    [config, fields, entries, passwords, matches],
  )
  const shown = useShownProblems(problems)
  const hasBox = isProvider(config.humanCheck.kind) && config.humanCheck.kind !== 'recaptcha-v3'

  const submit = useMutation({
    mutationFn: async () => {
      const proof = hasBox ? token : await ownProof(config.humanCheck)()
      return await submitRegistration(requestOf(config, fields, entries, passwords, { proof, trap, invitation }))
    },
    onSuccess: (answer) => {
      const address = entries.values[config.verifyEmailAttribute ?? ''] ?? ''
      reset()
      onSubmitted(answer, address)
    },
    onError: (error) => {
      if (error instanceof ApiError) shown.refuse(byPlace(error.texts, fields))
    },
  })

  function reset(): void {
    setEntries(noEntries)
    forget()
    setPasswords(noPasswords)
    shown.clear()
    setToken('')
  }

  const { forgive, leave, errorAt } = shown
  return {
    fields,
    entries,
    passwords,
    trap,
    hasBox,
    submit,
    setTrap,
    setToken,
    leave,
    errorAt,
    setValue: (name: string, value: string) => {
      forgive(keyOf('field', name))
      setEntries({ ...entries, values: { ...entries.values, [name]: value } })
    },
    setReason: (reason: string) => {
      forgive(keyOf('reason'))
      setEntries({ ...entries, reason })
    },
    setTerms: (terms: boolean) => setEntries({ ...entries, terms }),
    setPassword: (password: string) => {
      forgive(keyOf('password'))
      setPasswords((before) => ({ ...before, password }))
    },
    setRepeated: (password2: string) => setPasswords((before) => ({ ...before, password2 })),
    /** Sends a valid form. Returns the first part with a problem. */
    send: (): string | undefined => {
      shown.leaveAll()
      const [first] = problems.keys()
      if (first === undefined) submit.mutate()
      return first
    },
    boxError: hasBox && token === '' && shown.hasLeft ? t('register.checkNeeded') : undefined,
  }
}

export type Registration = ReturnType<typeof useRegistration>

/** Which problems the user sees, and where. */
function useShownProblems(problems: ReadonlyMap<string, Problem>) {
  const { t } = useTranslation()
  /** Parts that the user has left: their problems are shown there, and not while the user starts to type. */
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set())
  /** The gateway's problems, until the part is changed. */
  const [refused, refuse] = useState<ReadonlyMap<string, string>>(new Map())
  const textOf = (problem: Problem): string => ('text' in problem ? problem.text : t(problem.key, problem.values))
  return {
    refuse,
    forgive: (key: string): void => refuse((before) => without(before, key)),
    leave: (key: string): void => setLeft((before) => new Set(before).add(key)),
    leaveAll: (): void => setLeft(new Set([...problems.keys(), ...left])),
    hasLeft: left.size > 0,
    errorAt: (key: string): string | undefined => {
      const said = refused.get(key)
      if (said !== undefined) return said
      const problem = left.has(key) ? problems.get(key) : undefined
      return problem === undefined ? undefined : textOf(problem)
    },
    clear: (): void => {
      setLeft(new Set())
      refuse(new Map())
    },
  }
}

const without = (map: ReadonlyMap<string, string>, key: string): ReadonlyMap<string, string> =>
  map.has(key) ? new Map([...map].filter(([one]) => one !== key)) : map

/** The gateway's texts about reasons and passwords begin with these words. */
const ownPlaces: readonly (readonly [RegExp, string])[] = [
  [/^Reason /, keyOf('reason')],
  [/^Passwords? /, keyOf('password')],
]

function byPlace(texts: readonly string[], fields: readonly FormAttributeView[]): ReadonlyMap<string, string> {
  const sorted = sortProblems(texts, fields)
  const places = new Map([...sorted.fields].map(([name, text]) => [keyOf('field', name), text]))
  for (const text of sorted.others) {
    const place = ownPlaces.find(([pattern]) => pattern.test(text))?.[1]
    if (place !== undefined) places.set(place, text)
  }
  return places
}
