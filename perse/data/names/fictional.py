"""Word lists: new names to give, known names, and words that are not names; with seeded draws of new names.

People and places of an anonymized text get their names here. A drawn name shares no word with `avoid`, so a new name is
never one that the text already uses. Places are invented; first and family names are ordinary ones of many languages, so
that an anonymized plot reads like a plot, at the price that a drawn pair can by chance be somebody's real name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Set

from perse.identity import draw


def _listed(words: str, between: str | None = None) -> tuple[str, ...]:
    return tuple(" ".join(word.split()) for word in words.split(between))


# --- to give, and first names also to know

FIRST_NAMES = _listed(
    """
    Aaron Abigail Abraham Ada Adam Adele Adrian Agnes Ahmed Aidan Aisha Akira Alan Albert Alejandro Alex Alexander Alexandra
    Alexei Alfred Ali Alice Alison Allison Alma Alvin Amanda Amber Amelia Amina Amir Amy Ana Anastasia Anders Andrea Andrew
    Andy Angela Angelina Anita Ann Anna Anne Annie Anthony Antonia Antonio Antonina April Archie Arjun Arnold Arthur Ashley
    Astrid Audrey Aurora Ava Barbara Barry Beatrice Becky Ben Benedict Benjamin Bernard Bernice Bert Beth Betty Beverly Bill
    Billy Blanche Bob Bobby Boris Brad Bradley Brandon Brenda Brendan Brett Brian Bridget Bruce Bruno Bryan Caleb Calvin
    Cameron Camila Carl Carla Carlos Carmen Carol Caroline Carrie Casey Catherine Cecilia Celeste Chad Chandra Charles
    Charlie Charlize Charlotte Chester Chloe Chris Christian Christina Christine Christopher Cindy Claire Clara Clarence
    Claude Claudia Clifford Clint Clyde Colin Connie Connor Constance Corinne Craig Curtis Cynthia Cyril Daisy Dale Damian
    Dan Dana Daniel Daniela Danny Daphne Darren Dave David Dawn Dean Deborah Debra Dennis Derek Diana Diane Diego Dimitri
    Dolores Dominic Don Donald Donna Dora Doris Dorothy Doug Douglas Duncan Dustin Dwight Dylan Earl Ed Eddie Edgar Edith
    Edmund Edna Eduardo Edward Edwin Eileen Elaine Eleanor Elena Eli Elias Elijah Elisa Elizabeth Ella Ellen Elliot Elmer
    Elsa Elsie Emil Emily Emma Enrique Eric Erica Erik Erin Ernest Ernesto Esme Esther Ethan Ethel Eugene Eva Evan Eve
    Evelyn Fatima Felicity Felix Fernando Fiona Florence Frances Francesca Francis Francisco Frank Frankie Franklin Fred
    Frederick Frieda Gabriel Gabriela Gary Gavin Gene Geoffrey George Georgia Gerald Gerard Gertrude Giovanni Gina Gladys
    Glen Glenn Gloria Gordon Grace Graham Greg Gregory Greta Guillermo Gus Gustav Guy Gwen Haakon Hannah Hans Harold Harriet
    Harris Harrison Harry Harvey Hassan Hazel Heather Hector Heidi Helen Helena Helga Henrietta Henrik Henry Herbert Herman
    Hilda Hiroshi Holly Homer Horace Howard Hubert Hugh Hugo Ian Ibrahim Ida Igor Imogen Ines Ingrid Irene Iris Irma Isaac
    Isabel Isabella Isaiah Ivan Ivy Jack Jackie Jackson Jacob Jacqueline Jake James Jamie Jan Jane Janet Janice Jasmine
    Jason Javier Jay Jean Jeanne Jeff Jeffrey Jen Jennifer Jenny Jeremy Jerome Jerry Jesse Jessica Jessie Jill Jim Jimmy Jo
    Joan Joanna Joe Joel Joey John Johnny Jon Jonah Jonas Jonathan Jordan Jorge Jose Joseph Josephine Josh Joshua Joy Joyce
    Juan Juanita Judith Judy Julia Julian Julie Juliet June Justin Kamala Karen Karim Karl Kate Katherine Kathleen Kathryn
    Kathy Katie Katya Kay Keith Kelly Kelsey Ken Kenji Kenneth Kenny Kevin Khalid Kim Kirsten Klaus Kofi Konrad Kristen
    Kumar Kurt Kyle Lance Lars Larry Laura Lauren Laurence Lawrence Leah Lee Leif Leila Leo Leon Leonard Leroy Leslie Lester
    Lewis Liam Lillian Lily Linda Lisa Liv Liz Lloyd Logan Lois Lola Lorenzo Loretta Lorraine Lou Louis Louise Lucas Lucia
    Lucille Lucy Luis Luke Luther Lydia Lynn Mabel Madeleine Madison Maeve Maggie Malcolm Manuel Marc Marcel Marcia Marco
    Marcus Margaret Margot Maria Marianne Marie Marilyn Mario Marion Mark Marlene Marsha Martha Martin Marvin Mary Mateo
    Matilda Matt Matthew Maud Maureen Maurice Max Maxine May Megan Mehmet Mei Melanie Melissa Mercedes Meredith Mia Michael
    Michelle Miguel Mike Mildred Miles Millie Milo Milton Minnie Miranda Miriam Mitchell Mohammed Molly Mona Monica Morgan
    Morris Muriel Murray Nadia Nadine Naomi Natalie Natasha Nathan Nathaniel Neal Ned Neil Nell Nelson Nicholas Nick Nicola
    Nicole Nigel Nikolai Nina Noah Noel Nora Norma Norman Octavia Olaf Olga Oliver Olivia Omar Oona Ophelia Oscar Otis Otto
    Owen Pablo Paige Pamela Parvati Pat Patience Patricia Patrick Paul Paula Pauline Pearl Pedro Peggy Penelope Percy Pete
    Peter Petra Phil Philip Phillip Phoebe Phyllis Pierre Polly Priscilla Priya Quentin Rachel Rafael Raj Ralph Ramon
    Randall Randy Raoul Raquel Ravi Ray Raymond Rebecca Regina Reginald Renata Rene Rhoda Rhys Ricardo Richard Rick Ricky
    Rita Rob Robert Roberta Roberto Robin Roderick Rodney Roger Roland Roman Romeo Ron Ronald Ronnie Rosa Rosalind Rose
    Rosemary Ross Roxanne Roy Ruby Rudolf Rupert Russell Ruth Ryan Sabrina Sadie Sally Salma Sam Samantha Samir Samuel
    Sandra Sandy Sanjay Santiago Sara Sarah Saul Savannah Scott Sean Sebastian Selma Serena Sergei Seth Shane Shannon Sharon
    Shaun Shauna Sheila Shelley Sherry Shirley Sid Sidney Sigrid Silas Simon Simone Sofia Solomon Sonia Sonny Sophia Sophie
    Spencer Stacy Stan Stanley Stella Stephanie Stephen Sterling Steve Steven Stewart Stuart Sue Sunita Susan Susanna
    Suzanne Sven Sybil Sydney Sylvia Tabitha Tamara Tanya Tara Tate Tatiana Ted Teresa Terrence Terry Tess Thelma Theo
    Theodora Theodore Theresa Thomas Tiffany Tilda Tim Timothy Tina Toby Todd Tom Tommy Toni Tony Tracy Travis Trevor
    Tristan Trudy Tyler Ulrich Una Ursula Valentina Valeria Valerie Vanessa Vaughn Vera Vernon Veronica Victor Victoria
    Vikram Vince Vincent Viola Violet Virgil Virginia Vivian Vladimir Walker Wallace Wally Walter Wanda Warren Wayne Wendy
    Wesley Wilbur Wilfred Will Willa William Willie Wilma Winifred Winston Wolfgang Woody Xavier Yasmin Yolanda Yosef Yuki
    Yuri Yusuf Yvette Yvonne Zachary Zara Zelda Zoe
    """
)
FAMILY_NAMES = _listed(
    """
    Abara Abernathy Achterberg Adeyemi Aguilera Ahlberg Akande Alcott Alderton Almeida Alvarado Amadi Anand Andrade Ansell
    Appiah Arbour Archuleta Ardmore Arkwright Asante Ashdown Atherton Aubrey Axelrod Ayala Babbage Bachmann Balogun Bancroft
    Banerjee Baptiste Barlow Barrientos Beaumont Becerra Beckwith Bellamy Benavides Bergstrom Bhatt Birdsall Blackwood
    Blanchard Bloomquist Boateng Bonham Bouchard Brackett Brannigan Brightman Broderick Brunner Buckland Burgess Cabrera
    Caldwell Callahan Calloway Camacho Cardenas Carmichael Carrington Castellano Cavanaugh Chadwick Chakraborty Chandler
    Chaudhry Chisholm Christensen Claypool Clement Coleridge Colquitt Conway Corbin Cordero Corrigan Crabtree Cromwell
    Culpepper Cunningham Dalgaard Danforth Davenport Delacroix Delgado Demir Desrosiers Devereux Dhillon Dimitrov Donnelly
    Dragomir Drummond Dubois Duckworth Dunleavy Eastwick Eckhart Edelstein Egerton Eldridge Ellingson Emeka Endicott
    Engstrom Erikson Escobedo Espinoza Everly Fairbanks Farnsworth Faulkner Fenwick Ferreira Fielding Figueroa Finnegan
    Fitzroy Fontaine Forsythe Fothergill Fournier Frobisher Fujimoto Gallagher Galloway Gardiner Garrison Gauthier Gilchrist
    Goddard Gonzaga Goodwin Granger Greenhalgh Grimaldi Grosvenor Guerrero Gunderson Gupta Haddad Hallam Halvorsen Hamasaki
    Hardcastle Hargrove Hartigan Hathaway Haverford Hawthorne Heller Hendricks Herrera Hightower Hinojosa Hoffmann Hollis
    Holmgren Honda Hopkirk Horvath Huang Huxtable Ibarra Inoue Ivanov Jankowski Jansson Jaramillo Jeffries Jimenez Joubert
    Kaczmarek Kaplan Kapoor Karlsson Kavanagh Kellerman Kendrick Kerrigan Khoury Kimura Kingsley Kirkbride Kobayashi
    Kowalski Krishnan Lachance Lafferty Lagerfeld Lambert Langdon Larkin Lattimore Lavigne Ledbetter Leclerc Lindqvist
    Llewellyn Lockhart Lombardi Longstreet Lundgren Maddox Mahoney Mancini Mandeville Marchetti Marlowe Marquez Massey
    Matsuda Maxwell Mbeki Mcallister Mcbride Mcgillis Medina Mehta Mendoza Merriweather Middleton Mikkelsen Milburn Montague
    Montoya Moriarty Mortensen Mulligan Nakagawa Narayan Navarro Ndiaye Nesbitt Nightingale Nilsson Novak Nwosu Oakley Odell
    Ogilvie Okafor Okonkwo Oldham Olmstead Ortega Osborne Ostrowski Pacheco Paget Palmgren Papadakis Paquette Parrish Pascal
    Pavlov Peabody Pemberton Pendleton Peralta Petrov Pfeiffer Phelan Pickering Pinkerton Pomeroy Popescu Prendergast
    Prescott Quigley Quintana Radcliffe Rafferty Rahman Ramanathan Ransome Rasmussen Redfern Renard Rinaldi Robles Rockwell
    Rosenthal Rossi Rutherford Saavedra Sakamoto Salazar Sandoval Santoro Satterfield Schroeder Seaton Sedgwick Sepulveda
    Shackleton Shimizu Sinclair Skarsgard Sokolov Somerset Sorensen Stanhope Stavros Steiner Stockwell Strickland Sutherland
    Szabo Takahashi Talbot Tanaka Tennant Thackeray Thorne Thornbury Tillman Tolliver Torvald Tremblay Trevino Tuttle Ullman
    Underhill Valdez Vandermeer Varga Vasquez Velasco Venkatesh Vickers Villanueva Vogel Voss Wadsworth Wakefield Walcott
    Waverly Weatherby Wentworth Westbrook Whitcomb Whitlock Wickham Winslow Winthrop Wolanski Woodhouse Wrexham Yamamoto
    Yarborough Yilmaz Yoshida Zamora Zapata Zielinski
    """
)
INVENTED_PLACES = _listed(
    """
    Aldermarch Almsgate Amberlow Anselgate Arborwyn Ashmoor Aspenreach Averling Balmeroy Barrowmere Bellwater Benthorn
    Birkenfold Blackmere Blythmoor Borrowdell Bracklow Brambleton Brayholt Brennmoor Briarhaven Brinmouth Brookenfall
    Burrowick Caldmere Calverstow Candlewick Carrowdale Castermoor Cawdermouth Cedarholm Chalkhurst Charnmoor Cinderwick
    Claymarch Cloverfold Coldharrow Colmerstead Copperhithe Corriemoor Cragholme Cranmoss Crestwyn Cressford Dallowmere
    Damsonby Darrowfield Deepmarch Dellworth Dovermoss Draymouth Drummoor Dunmarrow Dunwater Eastermoor Ebbstow Edgemarsh
    Eldermoss Ellingmoor Elmsreach Emberwick Endermoor Eskmouth Everholt Fallowmere Farrowgate Fennmarch Fernhallow
    Ferrymoor Finchmarsh Flaxholme Foxmarrow Framblewick Frostholm Furzedale Galemouth Garthmoor Glassmere Glimmerford
    Goldenholt Gorsemouth Grantholm Graymarsh Greyhallow Grovermoor Gullstrand Hallowmere Hammerfold Harkwater Harrowmoss
    Hawkmere Hazelmarch Heathermouth Hestermoor Highfallow Hollowmarsh Honeyholt Hornmere Hythermoor Inglemoss Ironmere
    Islemarch Ivorholt Jarrowfield Jessamere Juniperstow Kelmarsh Kelpmouth Kestrelholm Kingsfallow Kirkmarrow Knottmere
    Lambswater Larchmarsh Laurelmoor Lavermouth Leafholm Lingermoor Linmarch Lonmere Lorrimouth Lowmarrow Lynholt Maplemoss
    Marblewick Marrowby Marshaven Meadowmarch Merrowdale Millerstow Mistermoor Moorhallow Mossmere Mulberfold Myrtlemarsh
    Narrowmere Nettleholm Nightmarsh Norrowmoor Oakfallow Oldermere Orchardstow Osiermouth Otterholm Owlmarsh Palemoor
    Partridgefold Pebblemarsh Pellowmere Penmarrow Petalwick Pinehallow Plovermoor Poplarstow Quarrowmere Quillmarsh
    Ravenholt Redfallow Reedmarrow Ringmoor Rookmarsh Rowanhallow Rushermoor Ryemarch Saltermoss Sandmarrow Sablewick
    Scarmere Sedgemarrow Shalemouth Silverfallow Skylarkholm Slatemoor Sorrelstow Sparrowmarsh Spindlewick Starlingmoor
    Stonemarrow Sunderholt Swanmarsh Tallowmere Tanglewick Tarnmoor Tealmarsh Thistlemouth Thornmarrow Tidemarsh Timberfold
    Torrowdale Umbermoor Valewater Vesperholm Vinemarch Wadermoor Warblestow Watermarrow Westermoss Wheatholm Whinmarsh
    Willowmarrow Windlemoor Wintermarsh Wolderstow Wrenmarsh Yarrowholt Yewmarch
    """
)

# --- to know

REAL_PLACES = _listed(
    """
    Aberdeen, Acapulco, Accra, Adelaide, Afghanistan, Africa, Alabama, Alaska, Albania, Albany, Alberta, Albuquerque,
    Alcatraz, Aleppo, Alexandria, Algeria, Algiers, Alps, Amazon, America, Amsterdam, Anchorage, Andes, Angola, Ankara,
    Antarctica, Antwerp, Appalachia, Arctic, Argentina, Arizona, Arkansas, Armenia, Asia, Athens, Atlanta, Atlantic,
    Atlantic City, Auckland, Auschwitz, Austin, Australia, Austria, Azerbaijan, Babylon, Baghdad, Bahamas, Bahrain, Bali,
    Balkans, Baltic, Baltimore, Bangalore, Bangkok, Bangladesh, Barbados, Barcelona, Basra, Bath, Bavaria, Beijing, Beirut,
    Bel Air, Belarus, Belfast, Belgium, Belgrade, Belize, Berkeley, Berlin, Bern, Beverly Hills, Birmingham, Black Sea,
    Blackpool, Bogota, Bolivia, Bombay, Bordeaux, Bosnia, Boston, Botswana, Boulder, Brasilia, Brazil, Brighton, Brisbane,
    Bristol, Britain, British Columbia, Brittany, Broadway, Bronx, Brooklyn, Bruges, Brussels, Bucharest, Budapest, Buenos
    Aires, Buffalo, Bulgaria, Burbank, Burma, Cairo, Calcutta, Calgary, California, Cambodia, Cambridge, Cameroon, Canada,
    Canberra, Cannes, Cape Cod, Cape Town, Capitol Hill, Caracas, Cardiff, Caribbean, Carolina, Casablanca, Catalonia,
    Central America, Central Park, Chad, Charleston, Chechnya, Chernobyl, Chicago, Chile, China, Chinatown, Cincinnati,
    Cleveland, Cologne, Colombia, Colorado, Columbus, Compton, Coney Island, Congo, Connecticut, Constantinople, Copenhagen,
    Cork, Cornwall, Costa Rica, Crete, Crimea, Croatia, Cuba, Cyprus, Czech Republic, Czechoslovakia, D.C., Dakota, Dallas,
    Damascus, Danube, Darfur, Delaware, Delhi, Denmark, Denver, Detroit, Devon, Dhaka, Dominican Republic, Dresden, Dubai,
    Dublin, Durban, East Berlin, East Germany, Eastern Europe, Ecuador, Edinburgh, Egypt, El Salvador, England, Eritrea,
    Essex, Estonia, Ethiopia, Europe, Everest, Far East, Fiji, Finland, Florence, Florida, France, Frankfurt, Gabon, Galway,
    Gambia, Gaza, Geneva, Genoa, Georgia, Germany, Ghana, Glasgow, Goa, Great Britain, Greece, Greenland, Greenwich Village,
    Guam, Guatemala, Guinea, Gulf of Mexico, Guyana, Hague, Haiti, Halifax, Hamburg, Hamptons, Hanoi, Harlem, Hartford,
    Havana, Hawaii, Helsinki, Himalayas, Hiroshima, Ho Chi Minh City, Holland, Hollywood, Honduras, Hong Kong, Honolulu,
    Houston, Hudson, Hungary, Iceland, Idaho, Illinois, India, Indian Ocean, Indiana, Indonesia, Iowa, Iran, Iraq, Ireland,
    Islamabad, Israel, Istanbul, Italy, Ivory Coast, Iwo Jima, Jakarta, Jamaica, Japan, Jersey City, Jerusalem,
    Johannesburg, Jordan, Juarez, Kabul, Kampala, Kansas, Kansas City, Karachi, Kashmir, Kathmandu, Kazakhstan, Kent,
    Kentucky, Kenya, Key West, Kiev, Kingston, Kolkata, Korea, Kosovo, Krakow, Kuala Lumpur, Kuwait, Kyiv, Kyoto, L.A., LA,
    La Paz, Lagos, Lahore, Lancashire, Laos, Las Vegas, Latin America, Latvia, Lebanon, Leeds, Leipzig, Leningrad, Liberia,
    Libya, Lima, Limerick, Lisbon, Lithuania, Liverpool, London, Long Island, Los Angeles, Louisiana, Luxembourg, Lyon,
    Macau, Macedonia, Madagascar, Madras, Madrid, Maine, Malawi, Malaysia, Mali, Malibu, Malta, Manchester, Manchuria,
    Manhattan, Manila, Manitoba, Marrakech, Marseille, Martha's Vineyard, Maryland, Massachusetts, Mauritius, Mecca,
    Medellin, Medina, Mediterranean, Melbourne, Memphis, Mexico, Mexico City, Miami, Miami Beach, Michigan, Middle East,
    Milan, Milwaukee, Minneapolis, Minnesota, Mississippi, Missouri, Moldova, Mombasa, Monaco, Mongolia, Montana,
    Montenegro, Montevideo, Montreal, Morocco, Moscow, Mount Everest, Mozambique, Mumbai, Munich, Nagasaki, Nairobi,
    Namibia, Nanking, Nantucket, Naples, Nashville, Nebraska, Nepal, Netherlands, Nevada, New Delhi, New Hampshire, New
    Jersey, New Mexico, New Orleans, New South Wales, New York, New York City, New Zealand, Newark, Newcastle, Nicaragua,
    Nice, Niger, Nigeria, Nile, Normandie, Normandy, North America, North Carolina, North Dakota, North Korea, North
    Vietnam, Northern Ireland, Norway, Nova Scotia, Nuremberg, Oakland, Odessa, Ohio, Okinawa, Oklahoma, Omaha, Oman,
    Ontario, Oregon, Orlando, Osaka, Oslo, Ottawa, Oxford, Pacific, Pakistan, Palermo, Palestine, Panama, Papua New Guinea,
    Paraguay, Paris, Pasadena, Pearl Harbor, Peking, Pennsylvania, Pentagon, Persia, Perth, Peru, Philadelphia, Philippines,
    Phnom Penh, Phoenix, Pittsburgh, Poland, Portland, Porto, Portugal, Prague, Provence, Providence, Prussia, Puerto Rico,
    Punjab, Pyongyang, Qatar, Quebec, Queens, Queensland, Quito, Rangoon, Red Sea, Reno, Reykjavik, Rhine, Rhode Island,
    Rhodesia, Rio, Rio de Janeiro, Rochester, Rockies, Romania, Rome, Rotterdam, Russia, Rwanda, Sacramento, Sahara, Saigon,
    Salt Lake City, Salzburg, Samoa, San Antonio, San Diego, San Francisco, Santa Fe, Santiago, Sao Paulo, Sarajevo,
    Sardinia, Saudi Arabia, Savannah, Scandinavia, Scotland, Seattle, Senegal, Seoul, Serbia, Seville, Shanghai, Sheffield,
    Siberia, Sicily, Sierra Leone, Silicon Valley, Singapore, Slovakia, Slovenia, Sofia, Soho, Somalia, South Africa, South
    America, South Carolina, South Dakota, South Korea, South Vietnam, Soviet Union, Soweto, Spain, Sparta, Sri Lanka, St.
    Louis, St. Petersburg, Stalingrad, Staten Island, Stockholm, Sudan, Sunset Boulevard, Surrey, Sussex, Sweden,
    Switzerland, Sydney, Syria, Tahiti, Taipei, Taiwan, Tampa, Tangier, Tanzania, Tasmania, Tehran, Tel Aviv, Tennessee,
    Texas, Thailand, Thames, Tibet, Tijuana, Times Square, Togo, Tokyo, Toronto, Transylvania, Trinidad, Tripoli, Troy,
    Tucson, Tulsa, Tunis, Tunisia, Turin, Turkey, Tuscany, U.K., U.S., U.S.A., UK, US, USA, USSR, Uganda, Ukraine, United
    Arab Emirates, United Kingdom, United States, United States of America, Uruguay, Utah, Uzbekistan, Valencia, Vancouver,
    Vatican, Vegas, Venezuela, Venice, Vermont, Verona, Versailles, Victoria, Vienna, Vietnam, Virginia, Wales, Wall Street,
    Warsaw, Washington, Washington D.C., Washington DC, Wellington, West Bank, West Berlin, West Germany, West Virginia,
    Western Europe, Winnipeg, Wisconsin, Wyoming, Yemen, York, Yorkshire, Yugoslavia, Zagreb, Zambia, Zanzibar, Zimbabwe,
    Zurich
    """,
    ",",
)
# Before a person's name and not part of it.
TITLES = _listed(
    """
    mr mrs ms miss mister dr doctor prof professor father mother brother sister uncle aunt auntie grandma grandpa captain
    capt lieutenant lt sergeant sgt corporal cpl private colonel col general gen major commander admiral officer agent
    detective det inspector constable sheriff deputy marshal chief judge justice sir dame lord lady king queen prince
    princess emperor empress duke duchess count countess baron baroness pope bishop archbishop cardinal reverend rev pastor
    rabbi imam president senator congressman governor mayor minister chancellor secretary coach nurse madame madam monsieur
    mademoiselle señor señora señorita herr frau director producer writer actor actress screenwriter filmmaker author
    novelist star comedian
    """
)
# In lower case before a person's name.
RELATIONS = _listed(
    """
    brother sister father mother husband wife son daughter uncle aunt cousin nephew niece grandfather grandmother friend
    boyfriend girlfriend lover fiancé fiancée fiance fiancee partner boss neighbor neighbour lawyer attorney detective
    director actor actress writer author producer comedian sheriff deputy captain doctor priest teacher professor named
    called nicknamed alias widow colleague buddy star stars starring co-star rival ex-wife ex-husband stepfather stepmother
    half-brother agent officer cop reporter journalist scientist singer soldier killer gangster boxer artist hero heroine
    protagonist by marrying marries married loves meets befriends kills killed murdered whom
    """
)
# First, last or anywhere in the names of places and of organisations.
PLACE_STARTS = _listed(
    """
    new north south east west upper lower port fort mount mt lake cape san santa los las el st saint isle little old camp
    """
)
PLACE_ENDS = _listed(
    """
    city town village street avenue boulevard road lane square plaza river lake mountain mountains mount hill hills island
    islands isle county state valley bay beach falls springs creek park bridge castle palace prison penitentiary asylum
    hotel inn station airport kingdom empire republic ocean sea desert forest woods canyon peninsula coast harbor harbour
    heights district peak manor house hall tower hospital zoo museum trailer ranch farm motel cemetery galaxy planet
    """
)
ORGANISATIONS = _listed(
    """
    squad army navy force forces corps corporation corp company co inc ltd industries enterprises group university college
    school academy institute agency department bureau brothers bros boys girls band club team league party church bank award
    awards prize studios pictures films productions festival orchestra times post news magazine family council committee
    commission union court ministry police association society project program act code file files
    """
)

# --- no names

# Always capitalised (days, nations, faiths), or generic.
NO_NAMES = _listed(
    """
    january february march april june july august september october november december monday tuesday wednesday thursday
    friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays sundays christmas xmas easter halloween
    thanksgiving hanukkah ramadan valentine god jesus christ bible koran torah lord satan devil heaven hell earth internet
    web tv dvd vcr ok mom dad mum mama papa christian christians christianity catholic catholics catholicism protestant
    protestants jew jews jewish judaism muslim muslims islam islamic buddhist buddhists buddhism hindu hindus hinduism
    mormon mormons amish quaker american americans british briton britons english englishman englishwoman englishmen french
    frenchman frenchwoman frenchmen german germans italian italians spanish spaniard spaniards portuguese dutch dutchman
    belgian swiss swede swedish swedes norwegian danish dane finn finnish icelandic irish irishman irishmen irishwoman scot
    scots scottish scotsman welsh welshman russian russians soviet soviets pole poles polish czech czechs slovak hungarian
    austrian greek greeks turk turks turkish arab arabs arabic israeli israelis iraqi iraqis iranian kurdish kurds afghan
    afghans pakistani indian indians bengali tamil punjabi hindi urdu chinese japanese korean koreans vietnamese thai
    filipino filipinos mexican mexicans latin latino latina latinos hispanic chicano cuban cubans puerto-rican colombian
    brazilian argentine chilean canadian canadians australian australians aussie african africans afro european europeans
    asian asians western eastern southern northern westerner texan texans californian yorker yorkers londoner parisian
    parisienne midwest midwestern roman romans victorian edwardian elizabethan nazi nazis communist communists communism
    fascist republican republicans democrat democrats hebrew yiddish cockney mandarin cantonese gypsy gypsies creole cajun
    cherokee apache sioux inuit maori aboriginal zulu viking vikings sci-fi r-rated pg world war wwi wwii ww2
    hollywood-style bollywood somali tibetan bohemian oscar-winning gay nineties renaissance
    """
)
# First names and places that are ordinary words too: at the start of a sentence a capital does not make them names.
WORDS_TOO = _listed(
    """
    will may mark guy sue dawn grace joy rose bill jack frank pat rob ray jay gene max miles lance earl dean dale glen june
    april ruby pearl daisy violet ivy holly patience constance victor art faith hope charity amber jasmine melody robin rich
    don iris summer autumn chase drew grant hunter dash pierce buck bud wade chip christian roman sandy rusty woody randy
    kitty gay ginger sunny sonny page norm olive nick phoenix nice bath cork reading turkey china chad troy providence
    boulder buffalo sky mobile goa lima cologne essex kent devon jordan niger oman us la
    """
)
# Open a sentence; spaCy's list of function words lacks them.
OPENERS = _listed(
    """
    set based starring including featuring directed written produced adapted inspired having being filled narrated told
    young old today tonight soon suddenly eventually finally later unfortunately despite unlike upon years days months weeks
    oscar award-winning legendary veteran famed acclaimed famous new newly yet following thanks along inside things people
    life love
    """
)

_FIRST_ENDINGS = ("ine", "ello", "wyn", "mund", "etta")
_FAMILY_ENDINGS = ("son", "ley", "man", "wright", "field")
_PLACE_ENDINGS = ("by", "thorpe", "ford", "wold", "ness")
_AMBIGUOUS = frozenset(word.casefold() for word in (*WORDS_TOO, *NO_NAMES, *REAL_PLACES))


def people(seed: int, who: str, count: int, avoid: Collection[str] = ()) -> list[str]:
    """`count` names "First Family": no first and no family name twice, and no word of `avoid` among them, in any capitals.

    `who` is the text that they are for: another text's names come from another draw (`identity.draw`). First names that are
    words or places too ("Will", "Sydney") are not given. Beyond the lists names get endings ("Thorneson").
    """
    taken = _words(avoid)
    known = [name for name in FIRST_NAMES if name.casefold() not in _AMBIGUOUS]
    first = _names(known, _FIRST_ENDINGS, seed=seed, who=who, purpose="fictional first names", taken=taken)
    family = _names(FAMILY_NAMES, _FAMILY_ENDINGS, seed=seed, who=who, purpose="fictional family names", taken=taken)
    return [f"{next(first)} {next(family)}" for _ in range(count)]


def places(seed: int, who: str, count: int, avoid: Collection[str] = ()) -> list[str]:
    """`count` different invented place names of one word, as `people`."""
    found = _names(INVENTED_PLACES, _PLACE_ENDINGS, seed=seed, who=who, purpose="fictional places", taken=_words(avoid))
    return [next(found) for _ in range(count)]


def _words(avoid: Collection[str]) -> frozenset[str]:
    return frozenset(word.casefold() for one in avoid for word in one.split())


def _names(
    known: Collection[str], endings: tuple[str, ...], *, seed: int, who: str, purpose: str, taken: Set[str]
) -> Iterator[str]:
    """The `known` names in an order drawn for `who`, then the same with one, two, ... endings: it never runs dry."""
    order = list(known)
    draw(seed, who, purpose).shuffle(order)
    tails = [""]
    while True:
        yield from (name + tail for tail in tails for name in order if (name + tail).casefold() not in taken)
        tails = [tail + ending for tail in tails for ending in endings]
