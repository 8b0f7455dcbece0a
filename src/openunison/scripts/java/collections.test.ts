import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ArrayList } from './collections.ts'
import { HashMap, HashSet, type MapEntry } from './hash-map.ts'
import { IllegalStateException, IndexOutOfBoundsException, NoSuchElementException } from './java-exception.ts'
import { UUID } from './java-types.ts'

/** As a script uses it, without types. */
const loose = (value: object): Record<string, unknown> & Iterable<unknown> => value as never

describe('ArrayList', () => {
  test('has positions, items and bounds', () => {
    const list = new ArrayList(['a', 'b'])
    list.add('c')
    list.add(1, 'x')
    expect(list.toArray()).toEqual(['a', 'x', 'b', 'c'])
    expect([list.remove(0), list.remove('b'), list.remove('none'), list.set(0, 'y')]).toEqual(['a', true, false, 'x'])
    expect([list.size(), list.get(1), list.indexOf('c'), `${list}`]).toEqual([2, 'c', 1, '[y, c]'])
    for (const wrong of [2, -1, 0.5, 'x', null]) expect(() => list.get(wrong)).toThrow(IndexOutOfBoundsException)
    expect(list.get(0)).toBe('y')
    expect(new ArrayList([1, 2, 3]).subList(1, 3).toArray()).toEqual([2, 3])
    expect(() => list.subList(1, 0)).toThrow(IndexOutOfBoundsException)
  })

  test('is like an array to JavaScript', () => {
    const list = new ArrayList(['a', 'b'])
    const array = loose(list)
    expect([array['length'], array['0'], array['2'], [...array]]).toEqual([2, 'a', undefined, ['a', 'b']])
    array['2'] = 'c'
    expect(list.size()).toBe(3)
    const positions: string[] = []
    for (const position in array) positions.push(position)
    expect(positions).toEqual(['0', '1', '2'])
    expect(Reflect.apply(array['map'] as never, array, [(text: string) => `${text}!`])).toEqual(['a!', 'b!', 'c!'])
    expect(JSON.stringify({ list })).toBe('{"list":["a","b","c"]}')
    expect(Reflect.set(array, 'other', 1)).toBe(false)
    expect(Reflect.defineProperty(array, '0', { value: 1 })).toBe(false)
    expect(Reflect.setPrototypeOf(array, null)).toBe(false)
  })

  test('sorts by natural order or by a function, and undefined becomes null', () => {
    const list = new ArrayList([3, 1, 2])
    list.sort()
    expect(list.toArray()).toEqual([1, 2, 3])
    list.sort((a: number, b: number) => b - a)
    expect(list.toArray()).toEqual([3, 2, 1])
    list.add(undefined)
    expect(list.get(3)).toBeNull()
  })

  test('its iterator removes the last returned item', () => {
    const list = new ArrayList(['a', 'b', 'a', 'c'])
    const iterator = list.iterator()
    expect(() => iterator.remove()).toThrow(IllegalStateException)
    while (iterator.hasNext()) if (iterator.next() === 'a') iterator.remove()
    expect(list.toArray()).toEqual(['b', 'c'])
    expect(() => iterator.next()).toThrow(NoSuchElementException)
  })

  test('any sequence of changes equals the same on an array', () => {
    const change = fc.oneof(
      fc.tuple(fc.constant('add' as const), fc.string()),
      fc.tuple(fc.constant('remove' as const), fc.string()),
      fc.tuple(fc.constant('removeIf' as const), fc.string()),
    )
    fc.assert(
      fc.property(fc.array(change), (changes) => {
        const list = new ArrayList()
        let array: string[] = []
        for (const [what, text] of changes) {
          if (what === 'add') array.push(text)
          else if (what === 'remove' && array.includes(text)) array.splice(array.indexOf(text), 1)
          else if (what === 'removeIf') array = array.filter((item) => item.length <= text.length)
          if (what === 'removeIf') list.removeIf((item: string) => item.length > text.length)
          else list[what](text)
        }
        expect(list.toArray()).toEqual(array)
      }),
    )
  })
})

describe('HashSet', () => {
  test('has each item once', () => {
    const set = new HashSet(['a', 'a', 'b'])
    expect([set.size(), set.add('a'), set.add('c'), set.remove('b'), set.remove('b')]).toEqual([
      2,
      false,
      true,
      true,
      false,
    ])
    expect(set.addAll(['a', 'd'])).toBe(true)
    expect(set.retainAll(new ArrayList(['a', 'c']))).toBe(true)
    expect([`${set}`, set.containsAll(['a']), [...loose(set)]]).toEqual(['[a, c]', true, ['a', 'c']])
  })

  test('texts as objects, and objects that represent texts, compare by their text', () => {
    const id = '0d9f5f6e-0000-4000-8000-000000000000'
    const set = new HashSet([new String('a'), 'a', UUID.fromString(id), UUID.fromString(id), id])
    expect(set.size()).toBe(3)
  })
})

describe('HashMap', () => {
  test('has the values that were put', () => {
    const map = new HashMap()
    expect([map.put('a', 1), map.put('a', 2), map.get('a'), map.get('b'), map.getOrDefault('b', 7)]).toEqual([
      null,
      1,
      2,
      null,
      7,
    ])
    expect([map.putIfAbsent('a', 9), map.computeIfAbsent('c', (key: string) => `${key}!`)]).toEqual([2, 'c!'])
    expect([`${map}`, map.size(), map.containsKey('c'), map.containsValue('c!'), map.remove('c')]).toEqual([
      '{a=2, c=c!}',
      2,
      true,
      true,
      'c!',
    ])
    const entry = map.entrySet().iterator().next() as MapEntry
    entry.setValue(3)
    expect([entry.getKey(), map.get('a')]).toEqual(['a', 3])
    expect(new HashMap({ x: 1 }).equals(new HashMap(new HashMap({ x: 1 })))).toBe(true)
  })

  test('names of JavaScript are keys like others', () => {
    const map = new HashMap()
    for (const key of ['__proto__', 'constructor', 'toString', 'size']) map.put(key, key)
    expect(map.keySet().toArray()).toEqual(['__proto__', 'constructor', 'toString', 'size'])
    expect(map.get('__proto__')).toBe('__proto__')
    expect(map.size()).toBe(4)
    expect(new HashMap().get('__proto__')).toBeNull()
  })

  test('its keys can be read and written like properties', () => {
    const map = loose(new HashMap({ a: 1 }))
    map['b'] = 2
    const keys: string[] = []
    for (const key in map) keys.push(key)
    expect([keys, map['a'], map['missing'], 'b' in map, delete map['a'], [...map]]).toEqual([
      ['a', 'b'],
      1,
      undefined,
      true,
      true,
      [['b', 2]],
    ])
    expect(Reflect.set(map, 'size', 7)).toBe(false)
    expect(JSON.stringify(map)).toBe('{"b":2}')
  })
})
