import { useMutation, useQueries, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { SubmitOutcomes } from '#features/portal/contract/main.ts'
import { accessQuery } from '../../api/access.ts'
import { gatewayNow } from '../../api/gateway-clock.ts'
import { rightsQuery, submitCart } from '../../api/workflows.ts'
import { useConfig, usePerson } from '../../app/config.tsx'
import { useTranslation } from '../../app/i18n.tsx'
import { useDraft } from '../../components/draft.ts'
import { useOwned } from '../../components/own-access.ts'
import { type CartLine, type LineProblem, problemsOf, refusalOf, requestOf } from './cart.ts'
import { type Cart, useCart } from './cart-store.ts'
import type { SentLine } from './submitted.tsx'

/** The state of a checkout: the lines with their reasons and problems, and what was sent. */
export function useCheckout() {
  const { requireReasons } = useConfig()
  const cart = useCart()
  const shared = useSharedReason()
  const { isOne, reason } = shared
  const [isChecked, setChecked] = useState(false)
  // Also for a single line, so that the user does not type it again when the number of lines changes.
  const lines = isOne ? cart.lines.map((line) => ({ ...line, reason })) : cart.lines
  const currentOf = useCurrentEnds()
  const problems = useProblems(lines, currentOf)
  const { submit, sent, refusalTextOf } = useSubmit(cart, (isAll) => {
    if (isAll) shared.clear()
    setChecked(false)
  })
  return {
    lines,
    shared,
    submit,
    sent,
    refusalTextOf,
    currentOf,
    isSeveral: cart.lines.length > 1,
    lacksReason: isChecked && requireReasons && reason.trim() === '',
    problemsOf: ({ key }: CartLine): readonly LineProblem[] => (isChecked ? (problems.get(key) ?? []) : []),
    change: ({ key }: CartLine, change: Partial<CartLine>): void => {
      if (isOne && change.reason !== undefined) shared.setReason(change.reason)
      else cart.change(key, change)
    },
    remove: ({ key }: CartLine): void => cart.remove([key]),
    /** Sends the lines, unless one has a problem. */
    send: (): void => {
      setChecked(true)
      if ([...problems.values()].every((list) => list.length === 0)) submit.mutate(lines)
    },
  }
}

export type Checkout = ReturnType<typeof useCheckout>

/** One reason for all lines, if the user wants that. */
function useSharedReason() {
  const { login } = usePerson()
  const [isOne, setOne, clearOne] = useDraft(login, 'cart-one-reason', true)
  const [reason, setReason, clearReason] = useDraft(login, 'cart-reason', '')
  const clear = (): void => {
    clearReason()
    clearOne()
  }
  return { isOne, setOne, reason, setReason, clear }
}

type CurrentOf = (line: CartLine) => string | undefined

/** When the access ends that the user has through the workflow of a line. That of others is not known. */
function useCurrentEnds(): CurrentOf {
  const ownedOf = useOwned()
  return (line) => (line.forOthers ? undefined : ownedOf(line).expires)
}

/** By key of the line. */
function useProblems(lines: readonly CartLine[], currentOf: CurrentOf): ReadonlyMap<string, readonly LineProblem[]> {
  const { requireReasons } = useConfig()
  const names = [...new Set(lines.map(({ name }) => name))]
  const rights = useQueries({ queries: names.map(rightsQuery) })
  const needsComment = (name: string): boolean => rights[names.indexOf(name)]?.data?.commentRequired === true
  return new Map(
    lines.map((line) => {
      const required = { ofRequest: requireReasons, ofDecision: needsComment(line.name) }
      const current = currentOf(line)
      return [
        line.key,
        problemsOf(line, required, gatewayNow(), current === undefined ? undefined : Date.parse(current)),
      ]
    }),
  )
}

/** Sends lines, and removes those that were accepted from the cart. */
function useSubmit(cart: Cart, onAnswer: (isAll: boolean) => void) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const [sent, setSent] = useState<readonly SentLine[]>([])
  const [outcomes, setOutcomes] = useState<SubmitOutcomes>({})
  const submit = useMutation({
    mutationFn: (wanted: readonly CartLine[]) => submitCart(wanted.map(requestOf)),
    onSuccess: (answered, wanted) => {
      const done = wanted.filter(({ uuid }) => answered[uuid]?.result === 'success')
      setSent((before) => [
        ...before,
        ...done.map(({ uuid, label, forOthers, subjects }) => ({
          uuid,
          label,
          subjects: forOthers ? subjects : [],
          decision: answered[uuid]?.decision,
        })),
      ])
      setOutcomes(answered)
      cart.remove(done.map(({ key }) => key))
      onAnswer(done.length === wanted.length)
      void client.invalidateQueries({ queryKey: ['requests'] })
      // A rejected line may come from an outdated list.
      void client.invalidateQueries({ queryKey: ['workflows'] })
      void client.invalidateQueries({ queryKey: accessQuery.queryKey })
    },
  })
  const refusalTextOf = (line: CartLine): string | undefined => {
    const text = outcomes[line.uuid]?.result
    if (text === undefined || text === 'success') return undefined
    const known = refusalOf(text, line)
    return known === undefined ? text : t(known)
  }
  return { submit, sent, refusalTextOf }
}
